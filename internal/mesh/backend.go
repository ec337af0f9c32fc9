// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// backend is a virtual service that a node may call, with the policy that holds for it.
type backend struct {
	service string
	// index is the place of the backend in the node's list.
	index int
	// ownPolicy says that policy differs from the node's default.
	ownPolicy bool
	policy    *ClientPolicy
	// inherited says that policy is the node's default.
	inherited bool
}

// field is the path of the backend in the node.
func (be *backend) field() string { return at("spec.backends", be.index) + ".virtualService" }

// policyField is the path of the policy in the node.
func (be *backend) policyField() string {
	if be.inherited {
		return "spec.backendDefaults.clientPolicy"
	}
	return be.field() + ".clientPolicy"
}

// backends are the virtual services that n may call, sorted by name, each once.
func (b *builder) backends(n *VirtualNode) []backend {
	var fallback *ClientPolicy
	if n.Spec.BackendDefaults != nil {
		fallback = n.Spec.BackendDefaults.ClientPolicy
	}
	all := make([]backend, 0, len(n.Spec.Backends))
	for i, entry := range n.Spec.Backends {
		be := backend{index: i, policy: fallback, inherited: true}
		if entry.VirtualService == nil || entry.VirtualService.VirtualServiceName == "" {
			b.report(Finding{
				Severity: SeverityError, Reason: ReasonInvalid, Object: n.Source, Field: be.field(),
				Message: fmt.Sprintf("backend %d of virtual node %q names no virtual service", i, n.Name),
				Mend:    "name a virtual service, or remove the backend",
			})
			continue
		}
		be.service = entry.VirtualService.VirtualServiceName
		if own := entry.VirtualService.ClientPolicy; own != nil {
			be.policy, be.inherited = own, false
			be.ownPolicy = !own.equal(fallback)
		}
		all = append(all, be)
	}
	slices.SortStableFunc(all, func(x, y backend) int { return cmp.Compare(x.service, y.service) })
	list := all[:0]
	for _, be := range all {
		if len(list) == 0 || list[len(list)-1].service != be.service {
			list = append(list, be)
			continue
		}
		b.report(duplicateBackend(n, be.index, be.service))
		if first := &list[len(list)-1]; be.policy.enforced() && !first.policy.enforced() {
			*first = be
		}
	}
	return list
}

// enforced says whether the policy refuses plaintext on any port.
func (p *ClientPolicy) enforced() bool { return p != nil && p.TLS.Enforced() }

// covers says whether the policy holds for a port of a target. Source: App Mesh API, ClientPolicyTls.ports.
func (p *ClientPolicyTLS) covers(port int32) bool {
	return len(p.Ports) == 0 || slices.Contains(p.Ports, port)
}

// backendView is what n's proxies know of one backend, of which offer is what all callers know; false where there is nothing that they could be told.
func (b *builder) backendView(n *VirtualNode, be *backend, offer *Offer) (ServiceView, bool) {
	view := ServiceView{Name: be.service, OwnPolicy: be.ownPolicy, ClientPolicy: be.policy, Addresses: offer.addresses, Ports: offer.ports}
	dialled := offer.dialled
	if !offer.exists {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: n.Source, Field: be.field() + ".virtualServiceName", Value: be.service,
			Message: fmt.Sprintf("virtual node %q has the virtual service %q as backend, which does not exist in mesh %q", n.Name, be.service, b.mesh),
			Mend:    "create the virtual service, or remove the backend",
		})
		if kubernetes := b.namesake(be.service, n.Source.Namespace); kubernetes != nil {
			view.Addresses, dialled = kubernetes.addresses(), kubernetes.dialled()
		}
	}
	if len(view.Ports) == 0 && be.policy.enforced() && len(view.Addresses) > 0 {
		view.Ports = refusedPorts(dialled, be.policy.TLS)
	}
	b.applyPolicy(n, be, &view)
	return view, len(view.Ports) > 0
}

// namesake is the Service that a virtual service is named after, or nil.
func (b *builder) namesake(service, namespace string) *Service {
	key, _, ok := serviceNamed(service, namespace, b.serviceSuffix())
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

// dialled are the Service's ports, sorted, each once.
func (s *Service) dialled() []int32 {
	ports := make([]int32, 0, len(s.Ports))
	for _, p := range s.Ports {
		if validPort(p.Port) {
			ports = append(ports, p.Port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// refusedPorts are the ports of a Service, known by its address, that policy covers: where nothing answers for a virtual service that must be called over TLS, no request may
// pass the proxy in plaintext.
func refusedPorts(dialled []int32, policy *ClientPolicyTLS) []ServicePortView {
	var ports []ServicePortView
	for _, p := range dialled {
		if policy.covers(p) {
			ports = append(ports, ServicePortView{Port: p, Protocol: ProtocolTCP})
		}
	}
	return ports
}

// applyPolicy takes from view what the policy does not let go out in plaintext, since TLS is not supported yet: a target that an enforced policy covers gets nothing, and the
// requests are refused rather than sent elsewhere.
func (b *builder) applyPolicy(n *VirtualNode, be *backend, view *ServiceView) {
	if be.policy == nil || be.policy.TLS == nil {
		return
	}
	tls := be.policy.TLS
	f := Finding{
		Severity: SeverityError, Reason: ReasonNotYetSupported, Object: n.Source, Field: be.policyField() + ".tls", Value: be.service,
		Message: fmt.Sprintf("virtual node %q must call virtual service %q over TLS, which is not supported yet, so its requests are refused", n.Name, be.service),
		Mend:    "set enforce to false, or remove the policy, where plaintext will do",
	}
	if !tls.Enforced() {
		f.Message = fmt.Sprintf("virtual node %q calls virtual service %q in plaintext: TLS is not supported yet", n.Name, be.service)
		f.Mend = "remove the policy to say so"
		b.report(f)
		return
	}
	if ports, covered := withhold(view.Ports, tls); covered {
		view.Ports = ports
		b.report(f)
	}
}

// withhold returns ports without the targets that an enforced policy covers, and without any route where it covers all, and says whether that takes anything away. All callers share
// ports, so what changes is copied.
func withhold(ports []ServicePortView, policy *ClientPolicyTLS) (left []ServicePortView, covered bool) {
	left = slices.Clone(ports)
	for i := range left {
		if len(policy.Ports) == 0 {
			left[i].Routes = nil
			covered = true
			continue
		}
		left[i].Routes = slices.Clone(left[i].Routes)
		for j := range left[i].Routes {
			r := &left[i].Routes[j]
			before := len(r.Targets)
			r.Targets = slices.DeleteFunc(slices.Clone(r.Targets), func(t TargetView) bool { return policy.covers(t.Port) })
			covered = covered || len(r.Targets) < before
		}
	}
	return left, covered
}
