// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package cluster plays the part of a Kubernetes cluster for a playground: it takes manifests as kubectl apply does,
// gives Services addresses, makes the pods of Deployments and the EndpointSlices of Services, decides which pods get a
// sidecar, and writes all of it as manifests into a directory. Only package playground calls it.
package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Key names an object. The version of the API group is not part of it.
type Key struct {
	Group, Kind, Namespace, Name string
}

// String is how messages name an object.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// Options are what a cluster has to know of its surroundings.
type Options struct {
	// Domain is the cluster's DNS domain.
	Domain string
	// IPFamilies are those of Services that name none.
	IPFamilies []corev1.IPFamily
	// Address returns the addresses of the Service with the number, which counts from 1; IPv4 first.
	Address func(number int) ([]netip.Addr, error)
}

// Cluster is the state of the cluster. It is not safe for concurrent use.
type Cluster struct {
	options     Options
	objects     map[Key]*unstructured.Unstructured
	services    []*corev1.Service // in the order of their creation
	deployments []*appsv1.Deployment
	restarts    map[Key]int
	pods        []*corev1.Pod
	written     map[string][]byte
}

// New returns an empty cluster.
func New(o Options) *Cluster {
	if len(o.IPFamilies) == 0 {
		o.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return &Cluster{options: o, objects: map[Key]*unstructured.Unstructured{}, restarts: map[Key]int{}, written: map[string][]byte{}}
}

// Apply takes the objects of a manifest, as kubectl apply -n namespace does, and returns their names. kinds takes only
// objects of these kinds; all if empty. source is the manifest's name in errors.
func (c *Cluster) Apply(source string, manifest []byte, namespace string, kinds []string) ([]Key, error) {
	objects, err := parse(manifest, namespace)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	var keys []Key
	for _, o := range objects {
		if len(kinds) > 0 && !slices.Contains(kinds, o.GetKind()) {
			continue
		}
		key := keyOf(o)
		if err := c.set(key, o); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", source, key, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: holds nothing to apply", source)
	}
	return keys, nil
}

func keyOf(o *unstructured.Unstructured) Key {
	return Key{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (c *Cluster) set(key Key, o *unstructured.Unstructured) error {
	switch key.Kind {
	case "Deployment":
		d, err := as[appsv1.Deployment](o)
		if err != nil {
			return err
		}
		c.deployments = put(c.deployments, d, key.Namespace, key.Name)
	case "Service":
		s, err := as[corev1.Service](o)
		if err != nil {
			return err
		}
		return c.setService(s)
	case "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod":
		return fmt.Errorf("the playground plays Deployments alone, not a %s", key.Kind)
	}
	c.objects[key] = o
	return nil
}

// as converts an object to its typed form, by its JSON.
func as[T any](o *unstructured.Unstructured) (*T, error) {
	data, err := o.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding it: %w", err)
	}
	typed := new(T)
	if err := yaml.Unmarshal(data, typed); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return typed, nil
}

type named interface {
	GetName() string
	GetNamespace() string
}

// put replaces the object of the same name where it stands, or adds it at the end.
func put[T named](list []T, o T, namespace, name string) []T {
	if i := find(list, namespace, name); i >= 0 {
		list[i] = o
		return list
	}
	return append(list, o)
}

func find[T named](list []T, namespace, name string) int {
	return slices.IndexFunc(list, func(o T) bool { return o.GetNamespace() == namespace && o.GetName() == name })
}

// clusterScoped are the kinds that have no namespace.
const clusterScoped = " Namespace Node PersistentVolume Mesh CustomResourceDefinition ClusterRole ClusterRoleBinding StorageClass " +
	"MutatingWebhookConfiguration ValidatingWebhookConfiguration PriorityClass APIService IngressClass GatewayClass RuntimeClass "

// parse splits a manifest into objects; those that can be in a namespace and name none get the one given.
func parse(manifest []byte, namespace string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for i, doc := range documents(manifest) {
		var fields map[string]any
		if err := yaml.Unmarshal(doc, &fields); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if len(fields) == 0 {
			continue
		}
		o := &unstructured.Unstructured{Object: fields}
		if o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("document %d: an object needs a kind and a metadata.name", i+1)
		}
		switch scoped := !strings.Contains(clusterScoped, " "+o.GetKind()+" "); {
		case !scoped:
			o.SetNamespace("") // as an API server does
		case o.GetNamespace() == "":
			o.SetNamespace(namespace)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// documents splits at lines that begin with three dashes.
func documents(manifest []byte) [][]byte {
	var docs [][]byte
	var doc []byte
	for line := range strings.Lines(string(manifest)) {
		if strings.HasPrefix(line, "---") {
			docs, doc = append(docs, doc), nil
			continue
		}
		doc = append(doc, line...)
	}
	return append(docs, doc)
}
