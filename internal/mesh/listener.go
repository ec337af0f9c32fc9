// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// DefaultRequestTimeout is how long a request may take where neither a route nor, for a node as provider, its listener says so. Source: App Mesh user guide, routes.
const DefaultRequestTimeout = 15 * time.Second

// protocols are those of the API, in the order in which messages name them.
func protocols() []Protocol {
	return []Protocol{ProtocolHTTP, ProtocolHTTP2, ProtocolGRPC, ProtocolTCP}
}

// validPort says whether p is a port that can be dialled.
func validPort(p int32) bool { return p >= 1 && p <= 65535 }

// usable says whether m can be programmed at all: what Validate finds fault with here is left out of every View.
func (m PortMapping) usable() bool {
	return validPort(m.Port) && slices.Contains(protocols(), m.Protocol)
}

// listenerField is the path of a node's, gateway's or router's listener.
func listenerField(index int) string { return "spec.listeners[" + strconv.Itoa(index) + "]" }

// listenerIndex is the place of the listener on port, or -1. Of two with one port the first counts.
func (n *VirtualNode) listenerIndex(port int32) int {
	return slices.IndexFunc(n.Spec.Listeners, func(li Listener) bool { return li.PortMapping.Port == port && li.PortMapping.usable() })
}

// listenerIndexes are the places of the listeners that can be programmed, TLS apart.
func (n *VirtualNode) listenerIndexes() []int {
	list := make([]int, 0, len(n.Spec.Listeners))
	for i, li := range n.Spec.Listeners {
		if n.listenerIndex(li.PortMapping.Port) == i {
			list = append(list, i)
		}
	}
	return list
}

// plaintext reports what cannot be done yet about a listener's TLS, and says whether the listener can be served and called in plaintext.
func (l *lookup) plaintext(n *VirtualNode, index int) bool {
	tls := n.Spec.Listeners[index].TLS
	if tls == nil || tls.Mode == TLSDisabled {
		return true
	}
	f := Finding{
		Severity: SeverityError, Reason: ReasonNotYetSupported, Object: n.Source, Field: listenerField(index) + ".tls.mode", Value: string(tls.Mode),
		Message: fmt.Sprintf("port %d of virtual node %q takes TLS alone, which is not supported yet, so the port is not served", n.Spec.Listeners[index].PortMapping.Port, n.Name),
		Mend:    "remove tls or set its mode to DISABLED where plaintext will do",
	}
	if tls.Mode == TLSPermissive {
		f.Message = fmt.Sprintf("port %d of virtual node %q is served in plaintext alone: TLS is not supported yet", n.Spec.Listeners[index].PortMapping.Port, n.Name)
		f.Mend = "remove tls or set its mode to DISABLED to say so"
	}
	l.report(f)
	return tls.Mode == TLSPermissive
}

// ownListeners are the listeners that n's proxies serve, with the API's defaults filled in.
func (l *lookup) ownListeners(n *VirtualNode) []Listener {
	var list []Listener
	for i, li := range n.Spec.Listeners {
		if n.listenerIndex(li.PortMapping.Port) != i {
			l.report(unusableListener("virtual node", n.Name, n.Source, i, li.PortMapping))
			continue
		}
		if l.plaintext(n, i) {
			li.HealthCheck = li.healthCheck()
			list = append(list, li)
		}
	}
	return list
}

// unusableListener says why a listener of a node or router is left out.
func unusableListener(kind, name string, source Source, index int, m PortMapping) Finding {
	f := Finding{
		Severity: SeverityError, Reason: ReasonInvalid, Object: source, Field: listenerField(index) + ".portMapping", Value: fmt.Sprintf("%d/%s", m.Port, m.Protocol),
		Message: fmt.Sprintf("listener %d of %s %q is left out: its port or protocol is not one that a listener can have", index, kind, name),
		Mend:    "use a port from 1 to 65535 and one of the protocols " + quoted(protocols()),
	}
	if m.usable() {
		f.Reason = ReasonDuplicate
		f.Field += ".port"
		f.Message = fmt.Sprintf("listener %d of %s %q is left out: an earlier listener has port %d", index, kind, name, m.Port)
		f.Mend = "give each listener a port of its own"
	}
	return f
}

// healthCheck is the listener's check with the API's default port: the listener's own.
func (li *Listener) healthCheck() *HealthCheckPolicy {
	if li.HealthCheck == nil || li.HealthCheck.Port != 0 {
		return li.HealthCheck
	}
	check := *li.HealthCheck
	check.Port = li.PortMapping.Port
	return &check
}

// httpTimeout is the listener's limit for requests of its protocol, nil for none and for tcp.
func (li *Listener) httpTimeout() *HTTPTimeout {
	if li.Timeout == nil {
		return nil
	}
	switch li.PortMapping.Protocol {
	case ProtocolHTTP:
		return li.Timeout.HTTP
	case ProtocolHTTP2:
		return li.Timeout.HTTP2
	case ProtocolGRPC:
		return li.Timeout.GRPC
	default:
		return nil
	}
}

// tcpIdle is the listener's limit for connections on which nothing moves, nil for none and for other protocols than tcp.
func (li *Listener) tcpIdle() *Duration {
	if li.PortMapping.Protocol != ProtocolTCP || li.Timeout == nil || li.Timeout.TCP == nil {
		return nil
	}
	return li.Timeout.TCP.Idle
}

// callerView is what callers need to know of the listener.
func (li *Listener) callerView() NodeListenerView {
	v := NodeListenerView{Port: li.PortMapping.Port, Protocol: li.PortMapping.Protocol, HealthCheck: li.healthCheck(), OutlierDetection: li.OutlierDetection}
	if li.TLS != nil {
		v.TLS = li.TLS.Mode
	}
	return v
}
