// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// What v1beta1's injector and controller read from a pod to find its node.
const (
	annotationMesh        = "appmesh.k8s.aws/mesh"
	annotationVirtualNode = "appmesh.k8s.aws/virtualNode"
	envVirtualNodeName    = "APPMESH_VIRTUAL_NODE_NAME"
	envResourceARN        = "APPMESH_RESOURCE_ARN"
)

// Member is a VirtualNode or VirtualGateway that a pod belongs to.
type Member struct {
	// ID is the custom resource.
	ID ID
	// Key is its name in the model, whose Kind is KindVirtualNode or KindVirtualGateway; zero for one that is not in force.
	Key mesh.Key
	// MeshOwner is the account that the mesh belongs to; empty for one's own.
	MeshOwner string
	// Idle is why the object is not in force; empty for one that is.
	Idle string

	attributes map[string]string
}

// String names the custom resource as kind/name.
func (m Member) String() string { return strings.ToLower(m.ID.Kind) + "/" + m.ID.Name }

// Names lists members for a message.
func Names(members []Member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

// Membership is what a pod's proxy can stand for. A pod that belongs to none has no proxy; one that belongs to several can have none either, for a proxy
// stands for one.
type Membership struct {
	// Members are in force: by selector, else those of v1beta1 by annotation, environment or the name of the pod's owner. VirtualGateways come first, and
	// objects of a kind in order of their names.
	Members []Member
	// Idle would be members, but are not in force.
	Idle []Member
	// Owner is the name of the workload that made the pod; empty for one made by hand.
	Owner string
}

// Has says whether key is that of a member.
func (m Membership) Has(key mesh.Key) bool {
	return slices.ContainsFunc(m.Members, func(member Member) bool { return member.Key == key })
}

// candidate is a virtual node or gateway as a pod of its namespace sees it.
type candidate struct {
	Member

	selector labels.Selector
	// legacy nodes without a podSelector take their pods by the name of the pod's owner.
	legacy bool
}

// Roster is what the pods of one namespace can belong to. It does not change, and may be read concurrently.
type Roster struct {
	candidates  []candidate
	deployments map[string]struct{}
}

// NewRoster finds what pods of a namespace can belong to. objects are the VirtualNodes and VirtualGateways of the namespace, those of others that may claim
// the same names, all Meshes, the Namespace, and its Deployments where they are known; anything else is passed over.
func NewRoster(options Options, namespace string, objects []Object) *Roster {
	d := New(options)
	deployments := map[string]struct{}{}
	for _, object := range objects {
		in, ok := newInput(object)
		if !ok {
			continue
		}
		switch in.id.Kind {
		case kindMesh, kindNamespace, kindVirtualNode, kindVirtualGateway:
			d.place(in)
			// Content costs the most, and says nothing of membership.
			d.graph.dirty[stageContent] = map[cellKey]struct{}{}
		case kindDeployment:
			if in.id.Namespace == namespace {
				deployments[in.id.Name] = struct{}{}
			}
		}
	}
	d.graph.run()
	key := cellKey{stage: stageWorkload, id: ID{Namespace: namespace}}
	r := &reader{graph: d.graph, key: key, seen: map[cellKey]struct{}{}}
	roster := &Roster{deployments: deployments}
	if found := read[*Roster](r, cellKey{stage: stageMembers, id: key.id}); found != nil {
		roster.candidates = found.candidates
	}
	return roster
}

// Empty says that the namespace has neither VirtualNodes nor VirtualGateways.
func (r *Roster) Empty() bool { return len(r.candidates) == 0 }

// OnlyLegacy says that the namespace has VirtualNodes, and that all of them, and there are no VirtualGateways, take their pods in the way of v1beta1.
func (r *Roster) OnlyLegacy() bool {
	return len(r.candidates) > 0 && !slices.ContainsFunc(r.candidates, func(c candidate) bool { return !c.legacy })
}

// Candidates are all VirtualNodes and VirtualGateways of the namespace.
func (r *Roster) Candidates() []Member {
	list := make([]Member, 0, len(r.candidates))
	for i := range r.candidates {
		list = append(list, r.candidates[i].Member)
	}
	return list
}

// Membership says what a pod of the namespace belongs to. The pod need not exist yet: its labels, annotations, owner and containers are all that counts.
func (r *Roster) Membership(pod *corev1.Pod) Membership {
	return r.membership(pod, func(name string) bool {
		_, known := r.deployments[name]
		return known
	})
}

func (r *Roster) membership(pod *corev1.Pod, hasDeployment func(string) bool) Membership {
	out := Membership{Owner: owner(pod, hasDeployment)}
	matches := r.selecting(pod)
	if len(matches) == 0 {
		matches = r.owning(pod, out.Owner)
	}
	for _, m := range matches {
		if m.Idle == "" {
			out.Members = append(out.Members, m)
		} else {
			out.Idle = append(out.Idle, m)
		}
	}
	return out
}

func (r *Roster) selecting(pod *corev1.Pod) []Member {
	var list []Member
	for i := range r.candidates {
		if r.candidates[i].selector.Matches(labels.Set(pod.Labels)) {
			list = append(list, r.candidates[i].Member)
		}
	}
	// Two of which one is not in force leave the other.
	if slices.ContainsFunc(list, func(m Member) bool { return m.Idle == "" }) {
		return slices.DeleteFunc(list, func(m Member) bool { return m.Idle != "" })
	}
	return list
}

// owning lists the nodes of v1beta1 that a pod belongs to: those that its annotation, else its containers' environment
// names, else those of the name of its owner.
func (r *Roster) owning(pod *corev1.Pod, made string) []Member {
	inMesh := func(string) bool { return true }
	if name, ok := pod.Annotations[annotationMesh]; ok {
		inMesh = func(mesh string) bool { return mesh == name }
	}
	is := func(m Member) bool { return m.ID.Name == made }
	if key, ok := nodeOfEnvironment(pod); ok {
		is = func(m Member) bool { return m.Key == key }
	}
	if name, ok := pod.Annotations[annotationVirtualNode]; ok {
		is = func(m Member) bool { return m.ID.Name == name || m.Key.Name == name }
	}
	var list []Member
	for i := range r.candidates {
		if c := &r.candidates[i]; c.legacy && inMesh(c.Key.Mesh) && is(c.Member) {
			list = append(list, c.Member)
		}
	}
	return list
}

// nodeOfEnvironment is the node that a proxy's environment names.
func nodeOfEnvironment(pod *corev1.Pod) (mesh.Key, bool) {
	for i := range pod.Spec.Containers {
		for _, env := range pod.Spec.Containers[i].Env {
			if env.Name != envVirtualNodeName && env.Name != envResourceARN {
				continue
			}
			if key, err := mesh.ParseProxyID(env.Value); err == nil {
				return key, true
			}
		}
	}
	return mesh.Key{}, false
}

// owner is the name of the workload that made the pod: its controller, and where that is the ReplicaSet of a Deployment,
// the Deployment, whose name is the ReplicaSet's without the hash of the pod template. A pod made by hand has none.
func owner(pod *corev1.Pod, hasDeployment func(string) bool) string {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return ""
	}
	if controller.Kind != "ReplicaSet" {
		return controller.Name
	}
	if hash := pod.Labels["pod-template-hash"]; hash != "" {
		return strings.TrimSuffix(controller.Name, "-"+hash)
	}
	if dash := strings.LastIndexByte(controller.Name, '-'); dash > 0 && hasDeployment(controller.Name[:dash]) {
		return controller.Name[:dash]
	}
	return controller.Name
}

// rosterOf lists the nodes and gateways of a namespace.
func rosterOf(r *reader, namespace string) *Roster {
	var list []candidate
	for _, kind := range []string{kindVirtualGateway, kindVirtualNode} {
		for _, id := range read[[]ID](r, indexIn(kind, namespace)) {
			if c, ok := candidateOf(r, id); ok {
				list = append(list, c)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &Roster{candidates: list}
}

func candidateOf(r *reader, id ID) (candidate, bool) {
	self := identityOf(r, id)
	in := read[*input](r, cellKey{stage: stageInput, id: id})
	if self == nil || in == nil {
		return candidate{}, false
	}
	c := candidate{Member: Member{ID: id, Key: self.key, MeshOwner: self.owner}}
	// A selector at fault selects nothing; the object itself says so.
	f := &findings{}
	switch o := in.object.(type) {
	case *v1beta2.VirtualNode:
		c.selector = f.selector("", o.Spec.PodSelector)
		c.legacy = self.legacy && o.Spec.PodSelector == nil
		if discovery := o.Spec.ServiceDiscovery; discovery != nil && discovery.AWSCloudMap != nil {
			c.attributes = map[string]string{}
			for _, attribute := range discovery.AWSCloudMap.Attributes {
				c.attributes[attribute.Key] = attribute.Value
			}
		}
	case *v1beta2.VirtualGateway:
		c.selector = f.selector("", o.Spec.PodSelector)
	default:
		return candidate{}, false
	}
	if by := holder(r, self.key); self.mesh == "" {
		c.Idle = "it belongs to no mesh"
		if len(self.findings) > 0 {
			c.Idle = self.findings[0].Message
		}
	} else if by != id {
		c.Key = mesh.Key{}
		c.Idle = fmt.Sprintf("its name %q in mesh %q belongs to %s %s/%s", self.key.Name, self.key.Mesh, by.Kind, by.Namespace, by.Name)
	}
	return c, true
}

// ClaimedName is the App Mesh name of a VirtualNode or VirtualGateway, which objects of other namespaces may claim too; false for any other object.
func ClaimedName(object metav1.Object) (string, bool) {
	switch o := object.(type) {
	case *v1beta2.VirtualNode:
		return nameOr(o.Spec.AWSName, o.Name+"_"+o.Namespace), true
	case *v1beta2.VirtualGateway:
		return nameOr(o.Spec.AWSName, o.Name+"_"+o.Namespace), true
	}
	return "", false
}
