// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"time"
)

// Description is an object in the form that the App Mesh API answers with: MeshData, VirtualNodeData and so on. ParseObject is the way back.
type Description struct {
	MeshName           string           `json:"meshName"`
	VirtualNodeName    string           `json:"virtualNodeName,omitempty"`
	VirtualServiceName string           `json:"virtualServiceName,omitempty"`
	VirtualRouterName  string           `json:"virtualRouterName,omitempty"`
	RouteName          string           `json:"routeName,omitempty"`
	VirtualGatewayName string           `json:"virtualGatewayName,omitempty"`
	GatewayRouteName   string           `json:"gatewayRouteName,omitempty"`
	Metadata           ResourceMetadata `json:"metadata"`
	// Spec is the object's own: MeshSpec, VirtualNodeSpec and so on.
	Spec   any            `json:"spec"`
	Status ResourceStatus `json:"status"`
}

// ResourceMetadata is what the API says of an object beside its spec. Source: App Mesh API, ResourceMetadata.
type ResourceMetadata struct {
	ARN string `json:"arn"`
	// Version is 1 or more.
	Version       int64  `json:"version"`
	UID           string `json:"uid,omitempty"`
	CreatedAt     *Epoch `json:"createdAt,omitempty"`
	LastUpdatedAt *Epoch `json:"lastUpdatedAt,omitempty"`
	MeshOwner     string `json:"meshOwner"`
	ResourceOwner string `json:"resourceOwner"`
}

// ResourceStatus is ACTIVE, INACTIVE or DELETED.
type ResourceStatus struct {
	Status string `json:"status"`
}

// StatusActive is the status of everything that exists.
const StatusActive = "ACTIVE"

// Epoch is a time in the API's form: seconds since 1970, with milliseconds as fraction.
type Epoch time.Time

// MarshalJSON writes a number.
func (e Epoch) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Time(e).UnixMilli()) / 1000)
}

// UnmarshalJSON reads a number.
func (e *Epoch) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	*e = Epoch(time.UnixMilli(int64(seconds * 1000)).UTC())
	return nil
}

func epoch(t time.Time) *Epoch {
	if t.IsZero() {
		return nil
	}
	return new(Epoch(t))
}

// Describe returns o in the form of the App Mesh API, and Services, slices and workloads in a form of our own. All of them marshal to JSON. It is nil for nil.
func Describe(o Object, opts Options) any {
	d := Description{Status: ResourceStatus{Status: StatusActive}}
	switch o := o.(type) {
	case *Mesh:
		d.Spec = o.Spec
		return d.with(o, o.Meta, opts)
	case *VirtualNode:
		d.VirtualNodeName, d.Spec = o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *VirtualService:
		d.VirtualServiceName, d.Spec = o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *VirtualRouter:
		d.VirtualRouterName, d.Spec = o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *Route:
		d.VirtualRouterName, d.RouteName, d.Spec = o.RouterName, o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *VirtualGateway:
		d.VirtualGatewayName, d.Spec = o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *GatewayRoute:
		d.VirtualGatewayName, d.GatewayRouteName, d.Spec = o.GatewayName, o.Name, o.Spec
		return d.with(o, o.Meta, opts)
	case *Service:
		return describeService(o)
	case *EndpointSlice:
		return describeSlice(o)
	case *Workload:
		return describeWorkload(o)
	}
	return nil
}

// with fills in what all objects of the API have.
func (d Description) with(o Object, m Meta, opts Options) Description {
	d.MeshName = m.MeshName
	d.Metadata = ResourceMetadata{
		ARN: opts.ARN(o.Key()), Version: max(m.Version, 1), UID: m.UID,
		CreatedAt: epoch(m.CreatedAt), LastUpdatedAt: epoch(m.UpdatedAt),
		MeshOwner: cmp.Or(m.Owner, opts.AccountID), ResourceOwner: opts.AccountID,
	}
	return d
}

// ServiceDescription is a Service for people to read.
type ServiceDescription struct {
	Namespace    string                   `json:"namespace"`
	Name         string                   `json:"name"`
	ClusterIPs   []netip.Addr             `json:"clusterIPs,omitempty"`
	ExternalName string                   `json:"externalName,omitempty"`
	Ports        []ServicePortDescription `json:"ports,omitempty"`
}

// ServicePortDescription is a port of a Service or of an EndpointSlice.
type ServicePortDescription struct {
	Name string `json:"name,omitempty"`
	Port int32  `json:"port"`
}

func describeService(s *Service) ServiceDescription {
	d := ServiceDescription{Namespace: s.Namespace, Name: s.Name, ClusterIPs: s.ClusterIPs, ExternalName: s.ExternalName}
	for _, p := range s.Ports {
		d.Ports = append(d.Ports, ServicePortDescription(p))
	}
	return d
}

// EndpointSliceDescription is an EndpointSlice for people to read.
type EndpointSliceDescription struct {
	Namespace string                   `json:"namespace"`
	Service   string                   `json:"service"`
	Name      string                   `json:"name"`
	Ports     []ServicePortDescription `json:"ports,omitempty"`
	Endpoints []EndpointDescription    `json:"endpoints,omitempty"`
}

// EndpointDescription is one workload of a Service.
type EndpointDescription struct {
	Address     netip.Addr `json:"address"`
	Ready       bool       `json:"ready"`
	Serving     bool       `json:"serving,omitempty"`
	Terminating bool       `json:"terminating,omitempty"`
	Zone        string     `json:"zone,omitempty"`
}

func describeSlice(s *EndpointSlice) EndpointSliceDescription {
	d := EndpointSliceDescription{Namespace: s.Namespace, Service: s.ServiceName, Name: s.Name}
	for _, p := range s.Ports {
		d.Ports = append(d.Ports, ServicePortDescription(p))
	}
	for _, e := range s.Endpoints {
		d.Endpoints = append(d.Endpoints, EndpointDescription(e))
	}
	return d
}

// WorkloadDescription is a pod as a member of a virtual node, for people to read.
type WorkloadDescription struct {
	MeshName        string            `json:"meshName"`
	VirtualNodeName string            `json:"virtualNodeName"`
	Namespace       string            `json:"namespace"`
	Name            string            `json:"name"`
	Addresses       []netip.Addr      `json:"addresses,omitempty"`
	Ready           bool              `json:"ready"`
	Terminating     bool              `json:"terminating,omitempty"`
	Zone            string            `json:"zone,omitempty"`
	Attributes      map[string]string `json:"attributes,omitempty"`
}

func describeWorkload(w *Workload) WorkloadDescription {
	return WorkloadDescription{
		MeshName: w.MeshName, VirtualNodeName: w.NodeName, Namespace: w.Namespace, Name: w.Name, Addresses: w.Addresses,
		Ready: w.Ready, Terminating: w.Terminating, Zone: w.Zone, Attributes: w.Attributes,
	}
}
