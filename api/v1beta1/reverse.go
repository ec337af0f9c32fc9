// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// MeshFrom converts a mesh from v1beta2. ToV1beta2 gives back what it was.
func MeshFrom(in *v1beta2.Mesh) *Mesh {
	return &Mesh{
		TypeMeta:   oldTypeMeta(in.Kind),
		ObjectMeta: *in.ObjectMeta.DeepCopy(),
		Spec: MeshSpec{
			EgressFilter:          in.Spec.EgressFilter.DeepCopy(),
			ServiceDiscoveryType:  clonePtr(in.Spec.ServiceDiscoveryType),
			CloudMapNamespaceName: clonePtr(in.Spec.CloudMapNamespaceName),
			AWSName:               carriedName(in.Spec.AWSName, in.Name),
			NamespaceSelector:     in.Spec.NamespaceSelector.DeepCopy(),
			MeshOwner:             clonePtr(in.Spec.MeshOwner),
			MeshServiceDiscovery:  in.Spec.MeshServiceDiscovery.DeepCopy(),
		},
		Status: MeshStatus{
			MeshArn:            clonePtr(in.Status.MeshARN),
			Conditions:         cloneConditions(in.Status.Conditions),
			ObservedGeneration: clonePtr(in.Status.ObservedGeneration),
		},
	}
}

// VirtualNodeFrom converts a node from v1beta2. ToV1beta2 gives back what it was.
func VirtualNodeFrom(in *v1beta2.VirtualNode) *VirtualNode {
	copied := in.DeepCopy()
	names := namingFrom(in.Spec.AWSName, in.Spec.MeshRef, in.Spec.MeshName, MangledName(in.Name, in.Namespace))
	out := &VirtualNode{
		TypeMeta:   oldTypeMeta(in.Kind),
		ObjectMeta: copied.ObjectMeta,
		Spec: VirtualNodeSpec{
			MeshName:         names.meshName,
			ServiceDiscovery: discoveryFrom(copied.Spec.ServiceDiscovery),
			Logging:          loggingFrom(copied.Spec.Logging),
			WrittenIn:        names.origin,
			AWSName:          names.awsName,
			MeshRef:          names.meshRef,
			PodSelector:      copied.Spec.PodSelector,
			BackendGroups:    copied.Spec.BackendGroups,
		},
		Status: VirtualNodeStatus{
			MeshArn:            copied.Status.MeshArn,
			VirtualNodeArn:     copied.Status.VirtualNodeARN,
			CloudMapService:    copied.Status.CloudMapService,
			Conditions:         copied.Status.Conditions,
			ObservedGeneration: copied.Status.ObservedGeneration,
		},
	}
	for i := range copied.Spec.Listeners {
		out.Spec.Listeners = append(out.Spec.Listeners, listenerFrom(&copied.Spec.Listeners[i]))
	}
	for _, backend := range copied.Spec.Backends {
		out.Spec.Backends = append(out.Spec.Backends, Backend{VirtualService: VirtualServiceBackend{
			VirtualServiceName: valueOr(backend.VirtualService.VirtualServiceName, ""),
			VirtualServiceRef:  backend.VirtualService.VirtualServiceRef,
			VirtualServiceARN:  backend.VirtualService.VirtualServiceARN,
			ClientPolicy:       policyFrom(backend.VirtualService.ClientPolicy),
		}})
	}
	if defaults := copied.Spec.BackendDefaults; defaults != nil {
		out.Spec.BackendDefaults = &BackendDefaults{ClientPolicy: policyFrom(defaults.ClientPolicy)}
	}
	return out
}

// VirtualServiceFrom converts a service from v1beta2. ToV1beta2 gives back what it was.
func VirtualServiceFrom(in *v1beta2.VirtualService) *VirtualService {
	copied := in.DeepCopy()
	names := namingFrom(in.Spec.AWSName, in.Spec.MeshRef, in.Spec.MeshName, in.Name)
	return &VirtualService{
		TypeMeta:   oldTypeMeta(in.Kind),
		ObjectMeta: copied.ObjectMeta,
		Spec: VirtualServiceSpec{
			MeshName:      names.meshName,
			VirtualRouter: copied.Spec.VirtualRouter,
			Routes:        copied.Spec.Routes,
			WrittenIn:     names.origin,
			AWSName:       names.awsName,
			MeshRef:       names.meshRef,
			Provider:      copied.Spec.Provider,
		},
		Status: VirtualServiceStatus{
			VirtualServiceArn:  copied.Status.VirtualServiceARN,
			VirtualRouterArn:   copied.Status.VirtualRouterArn,
			RouteArns:          copied.Status.RouteArns,
			Conditions:         copied.Status.Conditions,
			ObservedGeneration: copied.Status.ObservedGeneration,
		},
	}
}

func oldTypeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: GroupVersion().String(), Kind: kind}
}

func listenerFrom(in *v1beta2.Listener) Listener {
	out := Listener{
		PortMapping: v1beta2.LegacyPortMapping{
			Port:     in.PortMapping.Port,
			Protocol: v1beta2.LegacyPortProtocol(in.PortMapping.Protocol),
		},
		OutlierDetection: in.OutlierDetection,
		ConnectionPool:   in.ConnectionPool,
		Timeout:          in.Timeout,
	}
	if check := in.HealthCheck; check != nil {
		out.HealthCheck = &HealthCheckPolicy{
			HealthyThreshold:   new(check.HealthyThreshold),
			IntervalMillis:     new(check.IntervalMillis),
			Path:               check.Path,
			Port:               check.Port,
			Protocol:           new(check.Protocol),
			TimeoutMillis:      new(check.TimeoutMillis),
			UnhealthyThreshold: new(check.UnhealthyThreshold),
		}
	}
	if tls := in.TLS; tls != nil {
		out.TLS = &ListenerTLS{
			Mode:        tls.Mode,
			Certificate: ListenerTLSCertificate{File: tls.Certificate.File, SDS: tls.Certificate.SDS},
			Validation:  tls.Validation,
		}
		if acm := tls.Certificate.ACM; acm != nil {
			out.TLS.Certificate.ACM = &ACMCertificate{CertificateArn: acm.CertificateARN}
		}
	}
	return out
}

func discoveryFrom(in *v1beta2.ServiceDiscovery) *ServiceDiscovery {
	if in == nil {
		return nil
	}
	out := &ServiceDiscovery{}
	if dns := in.DNS; dns != nil {
		out.DNS = &DNSServiceDiscovery{HostName: dns.Hostname, ResponseType: dns.ResponseType}
	}
	if cloud := in.AWSCloudMap; cloud != nil {
		out.CloudMap = &CloudMapServiceDiscovery{
			NamespaceName: cloud.NamespaceName,
			ServiceName:   cloud.ServiceName,
			Attributes:    attributeMap(cloud.Attributes),
		}
		if !slices.Equal(cloud.Attributes, sortedAttributes(out.CloudMap.Attributes)) {
			out.CloudMap.AttributeList = cloud.Attributes
		}
	}
	return out
}

func policyFrom(in *v1beta2.ClientPolicy) *ClientPolicy {
	if in == nil {
		return nil
	}
	if in.TLS == nil {
		return &ClientPolicy{}
	}
	validation := &in.TLS.Validation
	out := &ClientPolicyTLS{
		Enforce: in.TLS.Enforce,
		Ports:   in.TLS.Ports,
		Validation: TLSValidation{
			Trust:                   TLSTrust{File: validation.Trust.File, SDS: validation.Trust.SDS},
			SubjectAlternativeNames: validation.SubjectAlternativeNames,
		},
		Certificate: in.TLS.Certificate,
	}
	if acm := validation.Trust.ACM; acm != nil {
		out.Validation.Trust.ACM = &ACMTrust{CertificateAuthorityArns: acm.CertificateAuthorityARNs}
	}
	return &ClientPolicy{TLS: out}
}

func loggingFrom(in *v1beta2.Logging) *Logging {
	if in == nil {
		return nil
	}
	out := &Logging{}
	if in.AccessLog != nil {
		out.AccessLog = &AccessLog{}
		if file := in.AccessLog.File; file != nil {
			out.AccessLog.File = &FileAccessLog{Path: file.Path, Format: file.Format}
		}
	}
	return out
}
