// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// takenDomains is where the domains of a port's services are noted, so that none stands twice; nil where the services' names alone show that none can.
func takenDomains(claims []claim) map[string]bool {
	last := ""
	for _, c := range claims {
		if name := c.service.Name; name <= last || strings.ContainsFunc(name, unusual) {
			return make(map[string]bool, 2*len(claims))
		}
		last = c.service.Name
	}
	return nil
}

// unusual says of a character that two different names with it may be the same domain, or that it is none of a host name's.
func unusual(c rune) bool {
	return c == ':' || c == '*' || c > unicode.MaxASCII || c >= 'A' && c <= 'Z'
}

// usualDomains are the hosts under which a service is called, with and without the port.
func usualDomains(service string, port int32) []string {
	return []string{service, service + ":" + portText(port)}
}

// domains are the hosts under which a service is called on a port, with and without the port. Envoy compares them without regard to case, reads "*" as a pattern, and
// refuses the whole route configuration for a domain that stands in it twice.
func (b *builder) domains(c claim, taken map[string]bool) []string {
	name := c.service.Name
	key := mesh.VirtualServiceKey(b.mesh, name)
	if name == "" || strings.Contains(name, "*") {
		b.report(mesh.ReasonInvalid, key, mesh.Finding{
			Value: name, Message: fmt.Sprintf("%q is no host name that a client can call, so the service is left out", clip(name)), Mend: "name the service by the host that clients call",
		})
		return nil
	}
	var out []string
	for _, domain := range usualDomains(name, c.port.Port) {
		if folded := strings.ToLower(domain); !taken[folded] {
			taken[folded] = true
			out = append(out, domain)
			continue
		}
		b.report(mesh.ReasonDuplicate, key, mesh.Finding{
			Value: domain, Message: fmt.Sprintf("another virtual service has the host %q on port %d already", clip(domain), c.port.Port), Mend: "rename one of the two",
		})
	}
	return out
}
