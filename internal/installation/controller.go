// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// originalLease is the Lease by which the original controller's replicas agree on a leader.
const originalLease = "appmesh-controller-leader-election"

// imageName is the last part of an image's name, without tag and digest, and tag its tag, empty for none.
func imageName(image string) (name, tag string) {
	image, _, _ = strings.Cut(image, "@")
	name = image[strings.LastIndex(image, "/")+1:]
	name, tag, _ = strings.Cut(name, ":")
	return name, tag
}

// replicas are the control plane's pods.
func (k *checkup) replicas() []*corev1.Pod {
	var list []*corev1.Pod
	for i := range k.pods {
		if p := &k.pods[i]; p.Namespace == k.System && p.Labels[nameLabel] == controllerName && !finished(p) {
			list = append(list, p)
		}
	}
	return list
}

// tag is the control plane's version, as its image says it; empty where it does not.
func (k *checkup) tag() string {
	for _, p := range k.replicas() {
		for i := range p.Spec.Containers {
			if _, tag := imageName(p.Spec.Containers[i].Image); tag != "" {
				return tag
			}
		}
	}
	return ""
}

// checkReplicas says whether the control plane runs, and whether one of its replicas leads.
func (k *checkup) checkReplicas(context.Context) error {
	if k.unread["pods"] {
		return nil
	}
	replicas := k.replicas()
	if len(replicas) == 0 {
		k.checkNone()
		return nil
	}
	ready := 0
	for _, p := range replicas {
		if isReady(p) {
			ready++
			continue
		}
		k.wrong(ReasonNotRunning, mesh.Source{Kind: "Pod", Namespace: p.Namespace, Name: p.Name},
			fmt.Sprintf("this replica of the control plane is not ready (%s)", whyNotReady(p)),
			fmt.Sprintf("kubectl -n %s describe pod %s; kubectl -n %s logs %s", p.Namespace, p.Name, p.Namespace, p.Name))
	}
	for i := range k.leases {
		l := &k.leases[i]
		if ready > 0 && l.Namespace == k.System && l.Name == kube.LeaseName && (l.Spec.RenewTime == nil || k.Now.Sub(l.Spec.RenewTime.Time) > settled) {
			k.wrong(ReasonNotRunning, mesh.Source{Kind: "Lease", Namespace: l.Namespace, Name: l.Name},
				"no replica of the control plane leads, so conditions are not written: what kubectl shows of an object's state is old",
				fmt.Sprintf("kubectl -n %s logs deploy/%s | grep -i lead", k.System, controllerName))
		}
	}
	return nil
}

// checkNone says why no pod of the control plane is there.
func (k *checkup) checkNone() {
	const harm = "nothing of what is applied comes into force, and objects and pods of meshed namespaces may be refused"
	for i := range k.deployments {
		d := &k.deployments[i]
		if d.Namespace != k.System || d.Spec.Template.Labels[nameLabel] != controllerName {
			continue
		}
		at := mesh.Source{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			k.wrong(ReasonNotRunning, at, "the control plane is scaled to 0 replicas: "+harm, fmt.Sprintf("kubectl -n %s scale deploy %s --replicas=1", d.Namespace, d.Name))
		} else {
			k.wrong(ReasonNotRunning, at, "no pod of the control plane is there: "+harm, fmt.Sprintf("kubectl -n %s describe deploy,replicaset says why none is made", d.Namespace))
		}
		return
	}
	k.wrong(ReasonNotRunning, mesh.Source{Kind: "Namespace", Name: k.System}, "no control plane is installed in this namespace: "+harm,
		k.installChart()+"; or, if it is in another namespace, name that with --system-namespace")
}

// running says that some replica is ready. Where none is, that is what is wrong, and not those whom it does not answer.
func (k *checkup) running() bool { return slices.ContainsFunc(k.replicas(), isReady) }

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// whyNotReady is what the pod's status says first.
func whyNotReady(p *corev1.Pod) string {
	for i := range p.Status.ContainerStatuses {
		if w := p.Status.ContainerStatuses[i].State.Waiting; w != nil && w.Reason != "" {
			return w.Reason
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason
		}
	}
	return "phase " + string(p.Status.Phase)
}

func finished(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// checkOthers looks for control planes beside this one.
func (k *checkup) checkOthers(context.Context) error {
	for i := range k.deployments {
		k.checkDeployment(&k.deployments[i])
	}
	for i := range k.leases {
		l := &k.leases[i]
		if l.Name == originalLease && l.Spec.RenewTime != nil && k.Now.Sub(l.Spec.RenewTime.Time) <= settled {
			k.wrong(ReasonTwoControllers, mesh.Source{Kind: "Lease", Namespace: l.Namespace, Name: l.Name},
				"an original App Mesh controller renews this lease, so it runs somewhere and writes to the same objects as the control plane",
				fmt.Sprintf("find it: kubectl -n %s get lease %s -o jsonpath={.spec.holderIdentity}; then remove its chart: helm list -A", l.Namespace, l.Name))
		}
	}
	return nil
}

func (k *checkup) checkDeployment(d *appsv1.Deployment) {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
		return
	}
	at := mesh.Source{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
	remove := fmt.Sprintf("remove its chart (helm list -n %s), or: kubectl -n %s delete deploy %s", d.Namespace, d.Namespace, d.Name)
	for i := range d.Spec.Template.Spec.Containers {
		switch name, _ := imageName(d.Spec.Template.Spec.Containers[i].Image); name {
		case "appmesh-controller", "app-mesh-controller":
			k.wrong(ReasonTwoControllers, at, "this is the original App Mesh controller: it writes to the same objects as the control plane, undoes its status, and puts finalizers back that hang once AWS no longer answers", remove)
			return
		case "aws-app-mesh-inject":
			k.wrong(ReasonTwoControllers, at, "this is App Mesh's original injector: it puts proxies into pods that ask AWS for their configuration", remove)
			return
		}
	}
	if d.Namespace != k.System && d.Spec.Template.Labels[nameLabel] == controllerName {
		k.wrong(ReasonTwoControllers, at, fmt.Sprintf("this is a second control plane beside the one in namespace %s: both write status to the same objects", k.System), remove)
	}
}
