// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// The health check that this version assumes where a field is absent; times are in milliseconds.
const (
	defaultHealthyThreshold   = 10
	defaultIntervalMillis     = 30000
	defaultTimeoutMillis      = 5000
	defaultUnhealthyThreshold = 2
)

// MangledName returns the App Mesh name that this version gives to a node or router: dots become dashes, and a name
// without dots gets its namespace appended.
func MangledName(name, namespace string) string {
	if strings.Contains(name, ".") {
		return strings.ReplaceAll(name, ".", "-")
	}
	return name + "-" + namespace
}

// ToV1beta2 converts the mesh; nothing that the user wrote is lost.
func (in *Mesh) ToV1beta2() *v1beta2.Mesh {
	return &v1beta2.Mesh{
		TypeMeta:   typeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: v1beta2.MeshSpec{
			AWSName:               nameOr(in.Spec.AWSName, in.Name),
			NamespaceSelector:     in.Spec.NamespaceSelector.DeepCopy(),
			MeshOwner:             clonePtr(in.Spec.MeshOwner),
			MeshServiceDiscovery:  in.Spec.MeshServiceDiscovery.DeepCopy(),
			EgressFilter:          in.Spec.EgressFilter.DeepCopy(),
			ServiceDiscoveryType:  clonePtr(in.Spec.ServiceDiscoveryType),
			CloudMapNamespaceName: clonePtr(in.Spec.CloudMapNamespaceName),
		},
		Status: v1beta2.MeshStatus{
			MeshARN:            clonePtr(in.Status.MeshArn),
			Conditions:         cloneConditions(in.Status.Conditions),
			ObservedGeneration: clonePtr(in.Status.ObservedGeneration),
		},
	}
}

// ToV1beta2 converts the node. It sets awsName to the name that this version gave it, meshRef by name alone, and fills
// in the defaults that this version had; nothing that the user wrote is lost.
func (in *VirtualNode) ToV1beta2() *v1beta2.VirtualNode {
	out := &v1beta2.VirtualNode{
		TypeMeta:   typeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: v1beta2.VirtualNodeSpec{
			PodSelector:      in.Spec.PodSelector.DeepCopy(),
			ServiceDiscovery: in.Spec.ServiceDiscovery.toV1beta2(),
			BackendGroups:    slices.Clone(in.Spec.BackendGroups),
		},
		Status: v1beta2.VirtualNodeStatus{
			VirtualNodeARN:     clonePtr(in.Status.VirtualNodeArn),
			Conditions:         cloneConditions(in.Status.Conditions),
			ObservedGeneration: clonePtr(in.Status.ObservedGeneration),
			MeshArn:            clonePtr(in.Status.MeshArn),
			CloudMapService:    in.Status.CloudMapService.DeepCopy(),
		},
	}
	for i := range out.Spec.BackendGroups {
		in.Spec.BackendGroups[i].DeepCopyInto(&out.Spec.BackendGroups[i])
	}
	names := naming{origin: in.Spec.WrittenIn, awsName: in.Spec.AWSName, meshRef: in.Spec.MeshRef, meshName: in.Spec.MeshName}
	out.Spec.AWSName, out.Spec.MeshRef, out.Spec.MeshName = names.toV1beta2(MangledName(in.Name, in.Namespace))
	for i := range in.Spec.Listeners {
		out.Spec.Listeners = append(out.Spec.Listeners, in.Spec.Listeners[i].toV1beta2())
	}
	for i := range in.Spec.Backends {
		service := in.Spec.Backends[i].VirtualService.toV1beta2(in.Spec.WrittenIn)
		out.Spec.Backends = append(out.Spec.Backends, v1beta2.Backend{VirtualService: service})
	}
	if in.Spec.BackendDefaults != nil {
		out.Spec.BackendDefaults = &v1beta2.BackendDefaults{ClientPolicy: in.Spec.BackendDefaults.ClientPolicy.toV1beta2()}
	}
	out.Spec.Logging = in.Spec.Logging.toV1beta2()
	return out
}

// ToV1beta2 converts the service. Its own router and routes stay as they are, in the legacy fields.
func (in *VirtualService) ToV1beta2() *v1beta2.VirtualService {
	copied := in.Spec.DeepCopy()
	out := &v1beta2.VirtualService{
		TypeMeta:   typeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: v1beta2.VirtualServiceSpec{
			Provider:      copied.Provider,
			VirtualRouter: copied.VirtualRouter,
			Routes:        copied.Routes,
		},
		Status: v1beta2.VirtualServiceStatus{
			VirtualServiceARN:  clonePtr(in.Status.VirtualServiceArn),
			Conditions:         cloneConditions(in.Status.Conditions),
			ObservedGeneration: clonePtr(in.Status.ObservedGeneration),
			VirtualRouterArn:   clonePtr(in.Status.VirtualRouterArn),
			RouteArns:          slices.Clone(in.Status.RouteArns),
		},
	}
	names := naming{origin: in.Spec.WrittenIn, awsName: in.Spec.AWSName, meshRef: in.Spec.MeshRef, meshName: in.Spec.MeshName}
	out.Spec.AWSName, out.Spec.MeshRef, out.Spec.MeshName = names.toV1beta2(in.Name)
	return out
}

func (in *Listener) toV1beta2() v1beta2.Listener {
	protocol := v1beta2.PortProtocol(in.PortMapping.Protocol)
	out := v1beta2.Listener{
		PortMapping:      v1beta2.PortMapping{Port: in.PortMapping.Port, Protocol: protocol},
		OutlierDetection: in.OutlierDetection.DeepCopy(),
		ConnectionPool:   in.ConnectionPool.DeepCopy(),
		Timeout:          in.Timeout.DeepCopy(),
	}
	if check := in.HealthCheck; check != nil {
		out.HealthCheck = &v1beta2.HealthCheckPolicy{
			HealthyThreshold:   valueOr(check.HealthyThreshold, defaultHealthyThreshold),
			IntervalMillis:     valueOr(check.IntervalMillis, defaultIntervalMillis),
			Path:               clonePtr(check.Path),
			Port:               clonePtr(check.Port),
			Protocol:           valueOr(check.Protocol, protocol),
			TimeoutMillis:      valueOr(check.TimeoutMillis, defaultTimeoutMillis),
			UnhealthyThreshold: valueOr(check.UnhealthyThreshold, defaultUnhealthyThreshold),
		}
	}
	if tls := in.TLS; tls != nil {
		out.TLS = &v1beta2.ListenerTLS{
			Mode:        tls.Mode,
			Certificate: v1beta2.ListenerTLSCertificate{File: clonePtr(tls.Certificate.File), SDS: clonePtr(tls.Certificate.SDS)},
			Validation:  tls.Validation.DeepCopy(),
		}
		if acm := tls.Certificate.ACM; acm != nil {
			out.TLS.Certificate.ACM = &v1beta2.TLSACMCertificate{CertificateARN: acm.CertificateArn}
		}
	}
	return out
}

func (in *ServiceDiscovery) toV1beta2() *v1beta2.ServiceDiscovery {
	if in == nil {
		return nil
	}
	out := &v1beta2.ServiceDiscovery{}
	if in.DNS != nil {
		out.DNS = &v1beta2.DNSServiceDiscovery{Hostname: in.DNS.HostName, ResponseType: clonePtr(in.DNS.ResponseType)}
	}
	if in.CloudMap != nil {
		out.AWSCloudMap = &v1beta2.AWSCloudMapServiceDiscovery{
			NamespaceName: in.CloudMap.NamespaceName,
			ServiceName:   in.CloudMap.ServiceName,
		}
		out.AWSCloudMap.Attributes = in.CloudMap.attributes()
	}
	return out
}

// attributes lists the attributes as they were written in v1beta2 while the list says the same, and by key otherwise.
func (in *CloudMapServiceDiscovery) attributes() []v1beta2.AWSCloudMapInstanceAttribute {
	if len(in.AttributeList) > 0 && maps.Equal(attributeMap(in.AttributeList), in.Attributes) {
		return slices.Clone(in.AttributeList)
	}
	return sortedAttributes(in.Attributes)
}

func sortedAttributes(attributes map[string]string) []v1beta2.AWSCloudMapInstanceAttribute {
	var list []v1beta2.AWSCloudMapInstanceAttribute
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		list = append(list, v1beta2.AWSCloudMapInstanceAttribute{Key: key, Value: attributes[key]})
	}
	return list
}

// attributeMap is a list of attributes as a map, nil for an empty one. Of two with one key the last counts.
func attributeMap(list []v1beta2.AWSCloudMapInstanceAttribute) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := make(map[string]string, len(list))
	for _, attribute := range list {
		out[attribute.Key] = attribute.Value
	}
	return out
}

func (in *VirtualServiceBackend) toV1beta2(origin Origin) v1beta2.VirtualServiceBackend {
	out := v1beta2.VirtualServiceBackend{
		VirtualServiceRef: in.VirtualServiceRef.DeepCopy(),
		VirtualServiceARN: clonePtr(in.VirtualServiceARN),
		ClientPolicy:      in.ClientPolicy.toV1beta2(),
	}
	byName := origin != OriginV1beta2 && in.VirtualServiceRef == nil && in.VirtualServiceARN == nil
	if byName || in.VirtualServiceName != "" {
		out.VirtualServiceName = new(in.VirtualServiceName)
	}
	return out
}

func (in *ClientPolicy) toV1beta2() *v1beta2.ClientPolicy {
	if in == nil {
		return nil
	}
	if in.TLS == nil {
		return &v1beta2.ClientPolicy{}
	}
	validation := &in.TLS.Validation
	trust := v1beta2.TLSValidationContextTrust{File: clonePtr(validation.Trust.File), SDS: clonePtr(validation.Trust.SDS)}
	if acm := validation.Trust.ACM; acm != nil {
		trust.ACM = &v1beta2.TLSValidationContextACMTrust{
			CertificateAuthorityARNs: slices.Clone(acm.CertificateAuthorityArns),
		}
	}
	return &v1beta2.ClientPolicy{TLS: &v1beta2.ClientPolicyTLS{
		Enforce: clonePtr(in.TLS.Enforce),
		Ports:   slices.Clone(in.TLS.Ports),
		Validation: v1beta2.TLSValidationContext{
			Trust:                   trust,
			SubjectAlternativeNames: validation.SubjectAlternativeNames.DeepCopy(),
		},
		Certificate: in.TLS.Certificate.DeepCopy(),
	}}
}

func (in *Logging) toV1beta2() *v1beta2.Logging {
	if in == nil {
		return nil
	}
	out := &v1beta2.Logging{}
	if in.AccessLog != nil {
		out.AccessLog = &v1beta2.AccessLog{}
		if in.AccessLog.File != nil {
			out.AccessLog.File = &v1beta2.FileAccessLog{
				Path:   in.AccessLog.File.Path,
				Format: in.AccessLog.File.Format.DeepCopy(),
			}
		}
	}
	return out
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1beta2.GroupVersion().String(), Kind: kind}
}

func meshRef(name string) *v1beta2.MeshReference {
	if name == "" {
		return nil
	}
	return &v1beta2.MeshReference{Name: name}
}

func cloneConditions(in []v1beta2.Condition) []v1beta2.Condition {
	var out []v1beta2.Condition
	for i := range in {
		out = append(out, *in[i].DeepCopy())
	}
	return out
}

func clonePtr[T any](in *T) *T {
	if in == nil {
		return nil
	}
	return new(*in)
}

func valueOr[T any](in *T, fallback T) T {
	if in == nil {
		return fallback
	}
	return *in
}
