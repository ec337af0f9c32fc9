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
			AWSName:               new(in.Name),
			EgressFilter:          in.Spec.EgressFilter.DeepCopy(),
			ServiceDiscoveryType:  clonePtr(in.Spec.ServiceDiscoveryType),
			CloudMapNamespaceName: clonePtr(in.Spec.CloudMapNamespaceName),
		},
		Status: v1beta2.MeshStatus{MeshARN: clonePtr(in.Status.MeshArn), Conditions: cloneConditions(in.Status.Conditions)},
	}
}

// ToV1beta2 converts the node. It sets awsName to the name that this version gave it, meshRef by name alone, and fills
// in the defaults that this version had; nothing that the user wrote is lost.
func (in *VirtualNode) ToV1beta2() *v1beta2.VirtualNode {
	out := &v1beta2.VirtualNode{
		TypeMeta:   typeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: v1beta2.VirtualNodeSpec{
			AWSName:          new(MangledName(in.Name, in.Namespace)),
			ServiceDiscovery: in.Spec.ServiceDiscovery.toV1beta2(),
			MeshRef:          meshRef(in.Spec.MeshName),
			MeshName:         new(in.Spec.MeshName),
		},
		Status: v1beta2.VirtualNodeStatus{
			VirtualNodeARN: clonePtr(in.Status.VirtualNodeArn),
			Conditions:     cloneConditions(in.Status.Conditions),
		},
	}
	for i := range in.Spec.Listeners {
		out.Spec.Listeners = append(out.Spec.Listeners, in.Spec.Listeners[i].toV1beta2())
	}
	for _, backend := range in.Spec.Backends {
		out.Spec.Backends = append(out.Spec.Backends, v1beta2.Backend{VirtualService: v1beta2.VirtualServiceBackend{
			VirtualServiceName: new(backend.VirtualService.VirtualServiceName),
			ClientPolicy:       backend.VirtualService.ClientPolicy.toV1beta2(),
		}})
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
	return &v1beta2.VirtualService{
		TypeMeta:   typeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: v1beta2.VirtualServiceSpec{
			AWSName:       new(in.Name),
			MeshRef:       meshRef(in.Spec.MeshName),
			MeshName:      new(in.Spec.MeshName),
			VirtualRouter: copied.VirtualRouter,
			Routes:        copied.Routes,
		},
		Status: v1beta2.VirtualServiceStatus{
			VirtualServiceARN: clonePtr(in.Status.VirtualServiceArn),
			Conditions:        cloneConditions(in.Status.Conditions),
		},
	}
}

func (in *Listener) toV1beta2() v1beta2.Listener {
	protocol := v1beta2.PortProtocol(in.PortMapping.Protocol)
	out := v1beta2.Listener{PortMapping: v1beta2.PortMapping{Port: in.PortMapping.Port, Protocol: protocol}}
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
			Certificate: v1beta2.ListenerTLSCertificate{File: clonePtr(tls.Certificate.File)},
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
		out.DNS = &v1beta2.DNSServiceDiscovery{Hostname: in.DNS.HostName}
	}
	if in.CloudMap != nil {
		out.AWSCloudMap = &v1beta2.AWSCloudMapServiceDiscovery{
			NamespaceName: in.CloudMap.NamespaceName,
			ServiceName:   in.CloudMap.ServiceName,
		}
		for _, key := range slices.Sorted(maps.Keys(in.CloudMap.Attributes)) {
			out.AWSCloudMap.Attributes = append(out.AWSCloudMap.Attributes, v1beta2.AWSCloudMapInstanceAttribute{
				Key:   key,
				Value: in.CloudMap.Attributes[key],
			})
		}
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
	trust := v1beta2.TLSValidationContextTrust{File: clonePtr(in.TLS.Validation.Trust.File)}
	if acm := in.TLS.Validation.Trust.ACM; acm != nil {
		trust.ACM = &v1beta2.TLSValidationContextACMTrust{
			CertificateAuthorityARNs: slices.Clone(acm.CertificateAuthorityArns),
		}
	}
	return &v1beta2.ClientPolicy{TLS: &v1beta2.ClientPolicyTLS{
		Enforce:    clonePtr(in.TLS.Enforce),
		Ports:      slices.Clone(in.TLS.Ports),
		Validation: v1beta2.TLSValidationContext{Trust: trust},
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
			out.AccessLog.File = &v1beta2.FileAccessLog{Path: in.AccessLog.File.Path}
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
