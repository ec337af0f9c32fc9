// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func decodeService(in *input) *content {
	object, ok := in.object.(*corev1.Service)
	if !ok {
		return nil
	}
	f := findings{source: in.source}
	out := &mesh.Service{Namespace: in.id.Namespace, Name: in.id.Name, Source: in.source}
	if object.Spec.Type == corev1.ServiceTypeExternalName {
		out.ExternalName = object.Spec.ExternalName
	}
	addresses := object.Spec.ClusterIPs
	field := "spec.clusterIPs"
	if len(addresses) == 0 && object.Spec.ClusterIP != "" {
		addresses, field = []string{object.Spec.ClusterIP}, "spec.clusterIP"
	}
	for _, text := range addresses {
		if text == corev1.ClusterIPNone || text == "" {
			continue
		}
		if address, ok := f.address(field, text); ok {
			out.ClusterIPs = append(out.ClusterIPs, address)
		}
	}
	for _, port := range object.Spec.Ports {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			out.Ports = append(out.Ports, mesh.ServicePort{Name: port.Name, Port: port.Port})
		}
	}
	return &content{objects: []mesh.Object{out}, findings: f.list}
}

func decodeEndpointSlice(in *input) *content {
	object, ok := in.object.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil
	}
	f := findings{source: in.source}
	service := object.Labels[discoveryv1.LabelServiceName]
	if service == "" {
		f.add(problem{
			severity: mesh.SeverityWarning,
			reason:   mesh.ReasonIgnored,
			field:    "metadata.labels",
			message:  fmt.Sprintf("this EndpointSlice belongs to no Service: it has no label %s", discoveryv1.LabelServiceName),
			mend:     "add the label with the Service's name",
		})
		return &content{findings: f.list}
	}
	if object.AddressType == discoveryv1.AddressTypeFQDN {
		f.add(problem{
			severity: mesh.SeverityWarning,
			reason:   mesh.ReasonIgnored,
			field:    "addressType",
			value:    string(object.AddressType),
			message:  "an EndpointSlice of host names cannot be used and is left out",
			mend:     "use addressType IPv4 or IPv6",
		})
		return &content{findings: f.list}
	}
	out := &mesh.EndpointSlice{Namespace: in.id.Namespace, ServiceName: service, Name: in.id.Name, Source: in.source}
	for _, port := range object.Ports {
		if port.Port != nil && (port.Protocol == nil || *port.Protocol == corev1.ProtocolTCP) {
			out.Ports = append(out.Ports, mesh.EndpointPort{Name: valueOf(port.Name), Port: *port.Port})
		}
	}
	for i := range object.Endpoints {
		if endpoint, ok := f.endpoint(fmt.Sprintf("endpoints[%d]", i), &object.Endpoints[i]); ok {
			out.Endpoints = append(out.Endpoints, endpoint)
		}
	}
	return &content{objects: []mesh.Object{out}, findings: f.list}
}

// endpoint decodes one endpoint. Conditions that are absent mean ready, as the API says.
func (f *findings) endpoint(field string, in *discoveryv1.Endpoint) (mesh.Endpoint, bool) {
	if len(in.Addresses) == 0 {
		return mesh.Endpoint{}, false
	}
	address, ok := f.address(field+".addresses[0]", in.Addresses[0])
	if !ok {
		return mesh.Endpoint{}, false
	}
	ready := in.Conditions.Ready == nil || *in.Conditions.Ready
	serving := ready
	if in.Conditions.Serving != nil {
		serving = *in.Conditions.Serving
	}
	return mesh.Endpoint{
		Address:     address,
		Ready:       ready,
		Serving:     serving,
		Terminating: valueOf(in.Conditions.Terminating),
		Zone:        valueOf(in.Zone),
	}, true
}

// address parses an IP address.
func (f *findings) address(field, text string) (netip.Addr, bool) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Zone() != "" {
		f.add(problem{
			reason:  mesh.ReasonInvalid,
			field:   field,
			value:   text,
			message: fmt.Sprintf("%q is not an IP address", text),
			mend:    "write an IPv4 or IPv6 address",
		})
		return netip.Addr{}, false
	}
	return address.Unmap(), true
}
