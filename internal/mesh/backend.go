// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// backend is a virtual service that a node may call, with the policy that holds for it.
type backend struct {
	service string
	// field is the path of the backend in the node.
	field string
	// ownPolicy says that policy differs from the node's default.
	ownPolicy bool
	policy    *ClientPolicy
	// policyField is the path of the policy in the node.
	policyField string
}

// backends are the virtual services that n may call, each once, in the user's order.
func (b *builder) backends(n *VirtualNode) []backend {
	var fallback *ClientPolicy
	if n.Spec.BackendDefaults != nil {
		fallback = n.Spec.BackendDefaults.ClientPolicy
	}
	list := make([]backend, 0, len(n.Spec.Backends))
	seen := make(map[string]int, len(n.Spec.Backends))
	for i, entry := range n.Spec.Backends {
		field := "spec.backends[" + strconv.Itoa(i) + "].virtualService"
		if entry.VirtualService == nil || entry.VirtualService.VirtualServiceName == "" {
			b.report(Finding{
				Severity: SeverityError, Reason: ReasonInvalid, Object: n.Source, Field: field,
				Message: fmt.Sprintf("backend %d of virtual node %q names no virtual service", i, n.Name),
				Mend:    "name a virtual service, or remove the backend",
			})
			continue
		}
		be := backend{service: entry.VirtualService.VirtualServiceName, field: field, policy: fallback, policyField: "spec.backendDefaults.clientPolicy"}
		if own := entry.VirtualService.ClientPolicy; own != nil {
			be.policy, be.policyField = own, field+".clientPolicy"
			be.ownPolicy = !own.equal(fallback)
		}
		first, twice := seen[be.service]
		if !twice {
			seen[be.service] = len(list)
			list = append(list, be)
			continue
		}
		b.report(duplicateBackend(n, i, be.service))
		if be.policy.enforced() && !list[first].policy.enforced() {
			list[first] = be
		}
	}
	return list
}

// enforced says whether the policy refuses plaintext on any port.
func (p *ClientPolicy) enforced() bool { return p != nil && p.TLS.Enforced() }

// equal says whether two policies ask for the same; nil asks for nothing, as an empty policy does.
func (p *ClientPolicy) equal(o *ClientPolicy) bool {
	if p == nil {
		p = new(ClientPolicy{})
	}
	if o == nil {
		o = new(ClientPolicy{})
	}
	return string(appendClientPolicy(nil, p)) == string(appendClientPolicy(nil, o))
}

// covers says whether the policy holds for a port of a target. Source: App Mesh API, ClientPolicyTls.ports.
func (p *ClientPolicyTLS) covers(port int32) bool {
	return len(p.Ports) == 0 || slices.Contains(p.Ports, port)
}

// backendView is what n's proxies know of one backend; false where there is nothing that they could be told.
func (b *builder) backendView(n *VirtualNode, be backend) (ServiceView, bool) {
	view := ServiceView{Name: be.service, OwnPolicy: be.ownPolicy, ClientPolicy: be.policy}
	namespace := n.Source.Namespace
	service, ok := find[*VirtualService](&b.lookup, VirtualServiceKey(b.mesh, be.service))
	if ok {
		namespace = service.Source.Namespace
		view.Ports = b.providerPorts(service)
	} else {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: n.Source, Field: be.field + ".virtualServiceName", Value: be.service,
			Message: fmt.Sprintf("virtual node %q has the virtual service %q as backend, which does not exist in mesh %q", n.Name, be.service, b.mesh),
			Mend:    "create the virtual service, or remove the backend",
		})
	}
	if kubernetes := b.namesake(be.service, namespace); kubernetes != nil {
		view.Addresses = kubernetes.addresses()
		if len(view.Ports) == 0 && be.policy.enforced() {
			view.Ports = kubernetes.refusedPorts(be.policy.TLS)
		}
	}
	b.applyPolicy(n, be, &view)
	return view, len(view.Ports) > 0
}

// namesake is the Service that a virtual service is named after, or nil.
func (b *builder) namesake(service, namespace string) *Service {
	key, _, ok := serviceNamed(service, namespace, b.serviceSuffix)
	if !ok {
		return nil
	}
	s, _ := find[*Service](&b.lookup, key)
	return s
}

// addresses are the ClusterIPs, sorted.
func (s *Service) addresses() []netip.Addr {
	if len(s.ClusterIPs) < 2 {
		return s.ClusterIPs
	}
	return slices.Compact(slices.SortedFunc(slices.Values(s.ClusterIPs), netip.Addr.Compare))
}

// refusedPorts are the ports, known by the Service's address, that policy covers: where nothing answers for a virtual service that must be called over TLS, no request may
// pass the proxy in plaintext.
func (s *Service) refusedPorts(policy *ClientPolicyTLS) []ServicePortView {
	if len(s.ClusterIPs) == 0 {
		return nil
	}
	var ports []ServicePortView
	for _, p := range s.Ports {
		if policy.covers(p.Port) && validPort(p.Port) {
			ports = append(ports, ServicePortView{Port: p.Port, Protocol: ProtocolTCP})
		}
	}
	slices.SortFunc(ports, func(x, y ServicePortView) int { return cmp.Compare(x.Port, y.Port) })
	return slices.CompactFunc(ports, func(x, y ServicePortView) bool { return x.Port == y.Port })
}

// applyPolicy takes from view what the policy does not let go out in plaintext, since TLS is not supported yet: a target that an enforced policy covers gets nothing, and the
// requests are refused rather than sent elsewhere.
func (b *builder) applyPolicy(n *VirtualNode, be backend, view *ServiceView) {
	if be.policy == nil || be.policy.TLS == nil {
		return
	}
	tls := be.policy.TLS
	f := Finding{
		Severity: SeverityError, Reason: ReasonNotYetSupported, Object: n.Source, Field: be.policyField + ".tls", Value: be.service,
		Message: fmt.Sprintf("virtual node %q must call virtual service %q over TLS, which is not supported yet, so its requests are refused", n.Name, be.service),
		Mend:    "set enforce to false, or remove the policy, where plaintext will do",
	}
	if !tls.Enforced() {
		f.Severity = SeverityWarning
		f.Message = fmt.Sprintf("virtual node %q calls virtual service %q in plaintext: TLS is not supported yet", n.Name, be.service)
		f.Mend = "remove the policy to say so"
		b.report(f)
		return
	}
	covered := false
	for i := range view.Ports {
		routes := view.Ports[i].Routes
		for j := range routes {
			before := len(routes[j].Targets)
			routes[j].Targets = slices.DeleteFunc(routes[j].Targets, func(t TargetView) bool { return tls.covers(t.Port) })
			covered = covered || len(routes[j].Targets) < before
		}
		if len(tls.Ports) == 0 {
			view.Ports[i].Routes = nil
			covered = true
		}
	}
	if covered {
		b.report(f)
	}
}
