// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// identity is what other objects need to know of a custom resource: its mesh and its name there.
type identity struct {
	// mesh is the App Mesh name of the mesh; empty for an object that belongs to none.
	mesh string
	// owner is the account that owns the mesh; empty for one's own.
	owner string
	// key is the object's name in the model; zero without a mesh.
	key mesh.Key
	// router is the implicit router of a v1beta1 service; zero for others.
	router mesh.Key
	// gateway is the gateway of a GatewayRoute.
	gateway ID
	// legacy is set for what was written in v1beta1.
	legacy bool
	// created decides between two objects that claim one name.
	created  time.Time
	findings []mesh.Finding
}

func (i *identity) found() []mesh.Finding { return i.findings }

// claims are the names in the model that a computed value claims for its object.
func claims(value any) []mesh.Key {
	var id *identity
	switch v := value.(type) {
	case *identity:
		id = v
	case *meshFacts:
		id = &v.identity
	}
	if id == nil || id.key == (mesh.Key{}) {
		return nil
	}
	if id.router != (mesh.Key{}) {
		return []mesh.Key{id.key, id.router}
	}
	return []mesh.Key{id.key}
}

// meshFacts are what its members need to know of a Mesh.
type meshFacts struct {
	identity

	selector labels.Selector
}

func factsOf(r *reader, id ID) *meshFacts {
	object, in := get[*v1beta2.Mesh](r, id)
	if in == nil {
		return nil
	}
	f := findings{source: in.source}
	name := nameOr(object.Spec.AWSName, object.Name)
	facts := &meshFacts{
		identity: identity{
			mesh:    name,
			owner:   valueOf(object.Spec.MeshOwner),
			key:     mesh.MeshKey(name),
			created: in.created(),
		},
		selector: f.selector("spec.namespaceSelector", object.Spec.NamespaceSelector),
	}
	facts.findings = f.list
	return facts
}

// selector compiles a label selector. One that is absent or at fault selects nothing.
func (f *findings) selector(field string, selector *metav1.LabelSelector) labels.Selector {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		f.add(problem{
			reason:  mesh.ReasonInvalid,
			field:   field,
			message: fmt.Sprintf("the selector %s is not valid and selects nothing: %v", field, err),
			mend:    "use the operators In and NotIn with values, Exists and DoesNotExist without",
		})
		return labels.Nothing()
	}
	return compiled
}

// meshesOf lists the Meshes whose namespaceSelector matches a namespace.
func meshesOf(r *reader, namespace string) []ID {
	set := namespaceLabels(r, namespace)
	var list []ID
	for _, id := range read[[]ID](r, indexMeshes) {
		if facts := read[*meshFacts](r, cellKey{stage: stageMesh, id: id}); facts != nil && facts.selector.Matches(set) {
			list = append(list, id)
		}
	}
	return list
}

// namespaceLabels are the labels of a namespace, with the one that every namespace has in a cluster.
func namespaceLabels(r *reader, namespace string) labels.Set {
	set := labels.Set{corev1.LabelMetadataName: namespace}
	if object, in := get[*corev1.Namespace](r, ID{Kind: kindNamespace, Name: namespace}); in != nil {
		maps.Copy(set, object.Labels)
	}
	return set
}

// identify finds the mesh and the App Mesh name of a namespaced custom resource.
func (d *Decoder) identify(r *reader, id ID) *identity {
	in := read[*input](r, cellKey{stage: stageInput, id: id})
	if in == nil {
		return nil
	}
	f := findings{source: in.source}
	out := &identity{created: in.created()}
	switch o := in.object.(type) {
	case *v1beta2.VirtualNode:
		d.join(r, &f, out, membership{ref: o.Spec.MeshRef, legacyName: o.Spec.MeshName, legacy: o.Spec.MeshName != nil})
		out.name(mesh.KindVirtualNode, nameOr(o.Spec.AWSName, o.Name+"_"+o.Namespace))
	case *v1beta2.VirtualService:
		legacy := o.Spec.MeshName != nil || o.Spec.VirtualRouter != nil || len(o.Spec.Routes) > 0
		d.join(r, &f, out, membership{ref: o.Spec.MeshRef, legacyName: o.Spec.MeshName, legacy: legacy})
		out.name(mesh.KindVirtualService, nameOr(o.Spec.AWSName, o.Name+"."+o.Namespace))
		if legacy && o.Spec.Provider == nil && out.mesh != "" {
			out.router = mesh.RouterKey(out.mesh, v1beta1.MangledName(implicitRouterName(o), o.Namespace))
		}
	case *v1beta2.VirtualRouter:
		d.join(r, &f, out, membership{ref: o.Spec.MeshRef})
		out.name(mesh.KindVirtualRouter, nameOr(o.Spec.AWSName, o.Name+"_"+o.Namespace))
	case *v1beta2.VirtualGateway:
		d.join(r, &f, out, membership{ref: o.Spec.MeshRef})
		out.name(mesh.KindVirtualGateway, nameOr(o.Spec.AWSName, o.Name+"_"+o.Namespace))
	case *v1beta2.BackendGroup:
		d.join(r, &f, out, membership{ref: o.Spec.MeshRef})
	}
	out.findings = f.list
	return out
}

func implicitRouterName(o *v1beta2.VirtualService) string {
	if o.Spec.VirtualRouter != nil && o.Spec.VirtualRouter.Name != "" {
		return o.Spec.VirtualRouter.Name
	}
	return o.Name
}

func (i *identity) name(kind mesh.Kind, name string) {
	if i.mesh != "" {
		i.key = mesh.Key{Kind: kind, Mesh: i.mesh, Name: name}
	}
}

// membership is what an object itself says about its mesh.
type membership struct {
	ref        *v1beta2.MeshReference
	legacyName *string
	legacy     bool
}

// join finds the mesh of an object: the stored reference wins, then the namespaces that the Meshes select.
func (d *Decoder) join(r *reader, f *findings, out *identity, m membership) {
	out.legacy = m.legacy
	field, name := "spec.meshRef.name", ""
	if m.ref != nil {
		name = m.ref.Name
	}
	if m.legacy {
		field = "spec.meshName"
		name = cmp.Or(name, valueOf(m.legacyName), d.options.DefaultMesh)
	}
	if name != "" {
		d.joinNamed(r, f, out, field, name)
		return
	}
	namespace := f.source.Namespace
	matches := read[[]ID](r, cellKey{stage: stageNamespace, id: ID{Name: namespace}})
	switch len(matches) {
	case 0:
		f.noMesh(r, namespace)
	case 1:
		facts := read[*meshFacts](r, cellKey{stage: stageMesh, id: matches[0]})
		out.mesh, out.owner = facts.mesh, facts.owner
	default:
		names := make([]string, 0, len(matches))
		for _, id := range matches {
			names = append(names, id.Name)
		}
		f.add(problem{
			reason:  mesh.ReasonNoMesh,
			field:   "metadata.namespace",
			value:   namespace,
			message: fmt.Sprintf("several Meshes select the namespace %q, and an object belongs to one: %s", namespace, strings.Join(names, ", ")),
			mend:    "narrow the namespaceSelector of all but one of them, or set spec.meshRef",
		})
	}
}

// joinNamed joins the Mesh object of a name. One that does not exist leaves the object where it was, for its proxies keep
// what they have until the mesh is there again.
func (d *Decoder) joinNamed(r *reader, f *findings, out *identity, field, name string) {
	facts := read[*meshFacts](r, cellKey{stage: stageMesh, id: ID{Kind: kindMesh, Name: name}})
	if facts != nil {
		out.mesh, out.owner = facts.mesh, facts.owner
		return
	}
	out.mesh = name
	f.add(problem{
		reason:  mesh.ReasonRefNotFound,
		field:   field,
		value:   name,
		message: fmt.Sprintf("there is no Mesh %q, to which this object belongs", name),
		mend:    "create the Mesh, or name one that exists",
	})
}

func (f *findings) noMesh(r *reader, namespace string) {
	p := problem{
		reason:  mesh.ReasonNoMesh,
		field:   "metadata.namespace",
		value:   namespace,
		message: fmt.Sprintf("no Mesh selects the namespace %q, so this object belongs to none", namespace),
		mend:    "give the namespace the labels that the namespaceSelector of a Mesh asks for",
	}
	switch {
	case len(read[[]ID](r, indexMeshes)) == 0:
		p.mend = "create a Mesh whose namespaceSelector matches the namespace's labels"
	case read[*input](r, cellKey{stage: stageInput, id: ID{Kind: kindNamespace, Name: namespace}}) == nil:
		p.message += "; nothing is known of that Namespace and its labels"
		p.mend = "add the Namespace object, with the labels that the namespaceSelector of a Mesh asks for"
	}
	f.add(p)
}

// claimant is an object that claims a name.
type claimant struct {
	id      ID
	created time.Time
}

// compareClaimants puts the older first, then orders by namespace and name.
func compareClaimants(a, b claimant) int {
	return cmp.Or(a.created.Compare(b.created), a.id.compareName(b.id))
}

func (id ID) compareName(other ID) int {
	return cmp.Or(cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Name, other.Name), id.Compare(other))
}

// winner is the object that has a name: the oldest that claims it.
func winner(r *reader, ids []ID) any {
	list := make([]claimant, 0, len(ids))
	for _, id := range ids {
		if facts := identityOf(r, id); facts != nil {
			list = append(list, claimant{id: id, created: facts.created})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return slices.MinFunc(list, compareClaimants).id
}

// identityOf reads the identity of any custom resource, and nil for one that is not there.
func identityOf(r *reader, id ID) *identity {
	switch id.Kind {
	case kindMesh:
		if facts := read[*meshFacts](r, cellKey{stage: stageMesh, id: id}); facts != nil {
			return &facts.identity
		}
		return nil
	case kindGatewayRoute:
		return read[*identity](r, cellKey{stage: stageBinding, id: id})
	}
	return read[*identity](r, cellKey{stage: stageIdentity, id: id})
}

// holder is the object that has a name in the model; the zero ID for a name that nothing has.
func holder(r *reader, key mesh.Key) ID {
	return read[ID](r, cellKey{stage: stageClaim, claim: key})
}

// conflict says that a name belongs to another object.
func (f *findings) conflict(field string, key mesh.Key, owner ID) {
	by := owner.Name
	if owner.Namespace != "" {
		by = owner.Namespace + "/" + owner.Name
	}
	f.add(problem{
		reason: mesh.ReasonConflicted,
		field:  field,
		value:  key.Name,
		message: fmt.Sprintf("the name %q of a %s in mesh %q belongs to the %s %s, which is older or of one age and first by name, so this object is not in force",
			key.Name, key.Kind, key.Mesh, owner.Kind, by),
		mend: "choose another awsName, or delete the other object",
	})
}

func nameOr(name *string, fallback string) string {
	return cmp.Or(valueOf(name), fallback)
}

// valueOf is what a pointer points to, and the zero value for nil.
func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
