// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newCluster(t *testing.T, manifests ...string) *Cluster {
	t.Helper()
	c := New(Options{Domain: "cluster.local", Address: func(n int) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.96.0." + strconv.Itoa(n)), netip.MustParseAddr("fd00::" + strconv.Itoa(n))}, nil
	}})
	for _, m := range manifests {
		if _, err := c.Apply("test", []byte(m), "prod", nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run starts the pods of all workloads, with addresses from 10.0.0.1 on; those whose names are in pending are not ready.
func run(t *testing.T, c *Cluster, pending ...string) {
	t.Helper()
	for _, w := range c.Workloads() {
		pods, err := c.Desired(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods {
			n := strconv.Itoa(len(c.pods) + 1)
			c.AddPod(pod, []netip.Addr{netip.MustParseAddr("10.0.0." + n), netip.MustParseAddr("fd01::" + n)})
			if !slices.Contains(pending, w.Name) {
				c.Ready(pod)
			}
		}
	}
}

const jazz = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: jazz-v1}
spec:
  replicas: 2
  selector: {matchLabels: {app: jazz}}
  template:
    metadata: {labels: {app: jazz}}
    spec:
      containers:
      - name: jazz
        image: hello-world
        ports: [{name: web, containerPort: 9080}]
---
apiVersion: v1
kind: Service
metadata: {name: jazz-v1}
spec:
  selector: {app: jazz}
  ports: [{name: http, port: 80, targetPort: web}]
`

func TestPodNamesAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t, jazz)
	pods, err := c.Desired(c.Workloads()[0])
	if err != nil {
		t.Fatal(err)
	}
	names := func(pods []*corev1.Pod) []string {
		var all []string
		for _, p := range pods {
			all = append(all, p.Name)
		}
		return all
	}
	first := names(pods)
	if diff := cmp.Diff([]string{"jazz-v1-655866595c-7d78f", "jazz-v1-655866595c-75fc6"}, first); diff != "" {
		t.Error(diff)
	}
	if err := c.Restart("prod", "jazz-v1"); err != nil {
		t.Fatal(err)
	}
	pods, err = c.Desired(c.Workloads()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names(pods) {
		if slices.Contains(first, name) {
			t.Errorf("%s survives a restart", name)
		}
	}
	pod := pods[0]
	set := pod.OwnerReferences[0]
	if set.Kind != "ReplicaSet" || set.Name != "jazz-v1-"+pod.Labels["pod-template-hash"] || WorkloadOf(pod) != "jazz-v1" || !strings.HasPrefix(pod.Name, set.Name+"-") {
		t.Errorf("pod %s, owner %+v, labels %v, workload %s", pod.Name, set, pod.Labels, WorkloadOf(pod))
	}
}

func TestEndpointSlices(t *testing.T) {
	t.Parallel()
	endpoint := func(ip string, ready, serving, terminating bool) string {
		return ip + " " + strconv.FormatBool(ready) + " " + strconv.FormatBool(serving) + " " + strconv.FormatBool(terminating)
	}
	service := func(spec string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: " + spec + "\n"
	}
	for name, tc := range map[string]struct {
		manifests []string
		pending   []string
		end       bool // the first pod is on its way out
		service   string
		want      []string // family, port, then the endpoints; one entry a slice
	}{
		"ready pods, by the name of their port": {
			[]string{jazz},
			nil, false, "jazz-v1",
			[]string{"IPv4 9080, " + endpoint("10.0.0.1", true, true, false) + ", " + endpoint("10.0.0.2", true, true, false)},
		},
		"pods that are not ready are listed as such": {
			[]string{jazz},
			[]string{"jazz-v1"},
			false, "jazz-v1",
			[]string{"IPv4 9080, " + endpoint("10.0.0.1", false, false, false) + ", " + endpoint("10.0.0.2", false, false, false)},
		},
		"a pod on its way out still serves": {
			[]string{jazz},
			nil, true, "jazz-v1",
			[]string{"IPv4 9080, " + endpoint("10.0.0.1", false, true, true) + ", " + endpoint("10.0.0.2", true, true, false)},
		},
		"both families": {
			[]string{jazz, service("{selector: {app: jazz}, ipFamilies: [IPv6, IPv4], ports: [{port: 9080}]}")},
			nil, false, "other",
			[]string{
				"IPv6 9080, " + endpoint("fd01::1", true, true, false) + ", " + endpoint("fd01::2", true, true, false),
				"IPv4 9080, " + endpoint("10.0.0.1", true, true, false) + ", " + endpoint("10.0.0.2", true, true, false),
			},
		},
		"nothing without a selector": {[]string{jazz, service("{ports: [{port: 9080}]}")}, nil, false, "other", nil},
		"an empty one when no pod matches": {
			[]string{jazz, service("{selector: {app: metal}, ports: [{port: 9080}]}")}, nil, false, "other", []string{"IPv4"},
		},
		"a headless Service has them too": {
			[]string{jazz, service("{selector: {app: jazz}, clusterIP: None, ports: [{port: 1, targetPort: 9080}]}")},
			nil, false, "other",
			[]string{"IPv4 9080, " + endpoint("10.0.0.1", true, true, false) + ", " + endpoint("10.0.0.2", true, true, false)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, tc.manifests...)
			run(t, c, tc.pending...)
			if tc.end {
				c.Terminating(c.Pods()[0], metav1.Time{})
			}
			var got []string
			for _, slice := range c.endpointSlices(c.services[find(c.services, "prod", tc.service)]) {
				if slice.Labels[discoveryv1.LabelServiceName] != tc.service {
					t.Errorf("labels %v", slice.Labels)
				}
				text := string(slice.AddressType)
				for _, p := range slice.Ports {
					text += " " + strconv.Itoa(int(*p.Port))
				}
				for _, e := range slice.Endpoints {
					text += ", " + endpoint(e.Addresses[0], *e.Conditions.Ready, *e.Conditions.Serving, *e.Conditions.Terminating)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestServicesKeepTheirAddresses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, jazz, "apiVersion: v1\nkind: Service\nmetadata: {name: metal}\nspec: {ports: [{port: 9080}]}\n", jazz)
	run(t, c, "none")
	ports, err := c.ServicePorts()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range ports {
		got = append(got, strings.TrimSpace(p.Name+" "+p.Address.String()+" "+strings.Join(texts(p.Endpoints), " ")))
	}
	if diff := cmp.Diff([]string{"prod/jazz-v1:80 10.96.0.1 10.0.0.1:9080 10.0.0.2:9080", "prod/metal:9080 10.96.0.2"}, got); diff != "" {
		t.Error(diff)
	}
	for _, pod := range c.Pods() {
		c.Terminating(pod, metav1.Time{})
	}
	if ports, err = c.ServicePorts(); err != nil || len(ports[0].Endpoints) != 2 {
		t.Errorf("pods that still serve are left out when there are no others: %v, %v", ports, err)
	}
}

func texts(endpoints []netip.AddrPort) []string {
	var all []string
	for _, e := range endpoints {
		all = append(all, e.String())
	}
	return all
}

func TestHosts(t *testing.T) {
	t.Parallel()
	c := newCluster(
		t, jazz, "apiVersion: v1\nkind: Service\nmetadata: {name: far, namespace: test}\nspec: {ports: [{port: 1}], ipFamilies: [IPv4, IPv6]}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: headless}\nspec: {ports: [{port: 1}], clusterIP: None}\n",
	)
	run(t, c)
	pod := c.Pods()[0]
	want := "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
		"10.0.0.1\t" + pod.Name + "\nfd01::1\t" + pod.Name + "\n" +
		"10.96.0.1\tjazz-v1.prod jazz-v1.prod.svc jazz-v1.prod.svc.cluster.local jazz-v1\n" +
		"10.96.0.2\tfar.test far.test.svc far.test.svc.cluster.local\n" +
		"fd00::2\tfar.test far.test.svc far.test.svc.cluster.local\n"
	if diff := cmp.Diff(want, string(c.Hosts(pod))); diff != "" {
		t.Error(diff)
	}
}

func TestSidecar(t *testing.T) {
	t.Parallel()
	const (
		enabled = "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {mesh: m, appmesh.k8s.aws/sidecarInjectorWebhook: enabled}}\n"
		quiet   = "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod, labels: {mesh: m}}\n"
		oldNode = "apiVersion: appmesh.k8s.aws/v1beta1\nkind: VirtualNode\nmetadata: {name: jazz-v1}\nspec: {meshName: dj-app, listeners: [{portMapping: {port: 9080, protocol: http}}]}\n"
		mesh    = "apiVersion: appmesh.k8s.aws/v1beta2\nkind: Mesh\nmetadata: {name: m}\nspec: {namespaceSelector: {matchLabels: {mesh: m}}}\n"
		newNode = "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualNode\nmetadata: {name: j}\nspec: {podSelector: {matchLabels: {app: jazz}}, listeners: [{portMapping: {port: 9080}}, {portMapping: {port: 9081}}]}\n"
	)
	named := strings.Replace(newNode, "spec: {", "spec: {awsName: mine, ", 1)
	refusing := strings.Replace(jazz, "labels: {app: jazz}}\n    spec", "labels: {app: jazz}, annotations: {appmesh.k8s.aws/sidecarInjectorWebhook: disabled}}\n    spec", 1)
	for name, tc := range map[string]struct {
		manifests []string
		want      *Sidecar
		err       string
	}{
		"none in a namespace that does not ask":      {[]string{jazz, quiet, mesh, newNode}, nil, ""},
		"none without a virtual node":                {[]string{jazz, enabled, mesh}, nil, ""},
		"none for a pod that refuses":                {[]string{refusing, enabled, mesh, newNode}, nil, ""},
		"first version: by the workload's name":      {[]string{jazz, enabled, oldNode}, &Sidecar{"mesh/dj-app/virtualNode/jazz-v1-prod", []int{9080}}, ""},
		"second version: by podSelector":             {[]string{jazz, enabled, mesh, newNode}, &Sidecar{"mesh/m/virtualNode/j_prod", []int{9080, 9081}}, ""},
		"second version: the node's own name counts": {[]string{jazz, enabled, mesh, named}, &Sidecar{"mesh/m/virtualNode/mine", []int{9080, 9081}}, ""},
		"no mesh for the namespace":                  {[]string{jazz, enabled, newNode}, nil, "0 meshes select namespace prod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, tc.manifests...)
			pods, err := c.Desired(c.Workloads()[0])
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Sidecar(pods[0])
			if (err != nil) != (tc.err != "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want one that says %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ manifest, err string }{
		"broken YAML":            {"a: [", "test: document 1"},
		"an object without name": {"kind: Service\n", "document 1: an object needs a kind and a metadata.name"},
		"pods of other kinds":    {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n", "StatefulSet prod/db: the playground plays Deployments alone"},
		"a wrong type":           {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {ports: 5}\n", "Service prod/x: reading it"},
		"nothing":                {"# nothing\n", "holds nothing to apply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := newCluster(t).Apply("test", []byte(tc.manifest), "prod", nil); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want one that says %q", err, tc.err)
			}
		})
	}
}

func TestWriteTouchesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	dir, staging := t.TempDir(), t.TempDir()
	c := newCluster(t, jazz, "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod}\n")
	write := func(want int) {
		t.Helper()
		if got, err := c.Write(dir, staging); err != nil || got != want {
			t.Errorf("%d files changed, want %d; error %v", got, want, err)
		}
	}
	write(4)
	write(0)
	run(t, c)
	write(3)
	pod := c.Pods()[0]
	c.Terminating(pod, metav1.Time{})
	write(2)
	c.RemovePod(pod)
	write(2)
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{
		"deployment_apps_prod_jazz-v1.yaml", "endpointslice_prod_" + c.endpointSlices(c.services[0])[0].Name + ".yaml", "namespace_prod.yaml",
		"pod_prod_" + c.Pods()[0].Name + ".yaml", "service_prod_jazz-v1.yaml",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if left, err := filepath.Glob(filepath.Join(staging, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
