// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "net/netip"

// Service is what the model needs to know of a Kubernetes Service.
type Service struct {
	Namespace string
	Name      string
	// ClusterIPs are the Service's own addresses, IPv4 and IPv6; none for a headless one.
	ClusterIPs []netip.Addr
	Ports      []ServicePort
	// ExternalName is set for a Service that is an alias of a DNS name.
	ExternalName string
	Source       Source
}

// ServicePort is a port of a Service. Only TCP ports are kept.
type ServicePort struct {
	// Name is empty where the Service has one port alone; it is what joins it to an EndpointSlice's port.
	Name string
	// Port is the Service's own.
	Port int32
}

// EndpointSlice is a part of a Service's endpoints.
type EndpointSlice struct {
	Namespace   string
	ServiceName string
	Name        string
	Ports       []EndpointPort
	Endpoints   []Endpoint
	Source      Source
}

// EndpointPort is a port that all endpoints of a slice share.
type EndpointPort struct {
	Name string
	Port int32
}

// Endpoint is one workload of a Service.
type Endpoint struct {
	// Address is the workload's; an EndpointSlice's further addresses mean the same workload and are left out.
	Address netip.Addr
	// Ready endpoints take new requests. One that is Terminating and Serving finishes what it has.
	Ready       bool
	Serving     bool
	Terminating bool
	// Zone is the topology zone, empty where unknown.
	Zone string
}

// Workload is a pod as a member of a virtual node.
type Workload struct {
	MeshName string
	NodeName string
	// Namespace and Name are the pod's.
	Namespace string
	Name      string
	// Addresses are the pod's, first the primary one; none before it has one.
	Addresses   []netip.Addr
	Ready       bool
	Terminating bool
	Zone        string
	// Attributes are what the pod would carry in AWS Cloud Map: its labels, and the node's own attributes.
	Attributes map[string]string
	Source     Source
}
