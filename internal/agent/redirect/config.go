// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package redirect

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Config says what is captured. The variables of the same meaning are those of App Mesh's proxy route manager.
type Config struct {
	// User and Group are whose traffic is left alone; nil for none, but one of them must be set, or Envoy's own traffic would come back to it.
	User, Group *uint32
	// IngressPort is where captured inbound connections go; needed if there are AppPorts.
	IngressPort uint16
	// EgressPort is where captured outbound connections go.
	EgressPort uint16
	// AppPorts are the ports whose inbound connections are captured; none captures nothing inbound.
	AppPorts []uint16
	// IgnoredPorts are the ports to which outbound connections are left alone; 22 always is.
	IgnoredPorts []uint16
	// IgnoredIPs are the addresses to which outbound connections are left alone, of both families.
	IgnoredIPs []netip.Prefix
	// IPv6 captures IPv6 too.
	IPv6 bool
}

// sshPort is always ignored, as App Mesh's route manager did.
const sshPort = 22

// Validate gathers all faults.
func (c *Config) Validate() error {
	var faults []error
	fault := func(text string) { faults = append(faults, errors.New(text)) }
	if c.User == nil && c.Group == nil {
		fault("neither a user nor a group is ignored, so Envoy's own connections would be sent back to it: give --ignore-uid or --ignore-gid")
	}
	if c.EgressPort == 0 {
		fault("no egress port: give --egress-port or APPMESH_ENVOY_EGRESS_PORT")
	}
	if len(c.AppPorts) > 0 && c.IngressPort == 0 {
		fault("application ports without an ingress port: give --ingress-port or APPMESH_ENVOY_INGRESS_PORT")
	}
	if c.IngressPort != 0 && c.IngressPort == c.EgressPort {
		fault(fmt.Sprintf("ingress and egress port are both %d: Envoy needs two", c.EgressPort))
	}
	for _, port := range c.AppPorts {
		if port == c.IngressPort || port == c.EgressPort {
			fault(fmt.Sprintf("application port %d is Envoy's own: take another port for the application", port))
		}
	}
	return errors.Join(faults...)
}

// ParsePorts reads ports separated by commas, and returns them sorted, each once. An empty list gives none.
func ParsePorts(list string) ([]uint16, error) {
	var ports []uint16
	for _, item := range items(list) {
		n, err := strconv.ParseUint(item, 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("%q is not a port: want numbers from 1 to 65535, separated by commas", item)
		}
		ports = append(ports, uint16(n))
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// ParseIPs reads addresses and networks of both families separated by commas, and returns them sorted, each once. An empty list gives none.
func ParseIPs(list string) ([]netip.Prefix, error) {
	var ips []netip.Prefix
	for _, item := range items(list) {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			address, addressErr := netip.ParseAddr(item)
			if addressErr != nil || address.Zone() != "" {
				return nil, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", item)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		ips = append(ips, prefix.Masked())
	}
	slices.SortFunc(ips, netip.Prefix.Compare)
	return slices.Compact(ips), nil
}

// ParseID reads the number of a user or group; an empty text gives none.
func ParseID(text string) (*uint32, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none is a value here
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is not the number of a user or group", text)
	}
	return new(uint32(n)), nil
}

func items(list string) []string {
	var found []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			found = append(found, item)
		}
	}
	return found
}
