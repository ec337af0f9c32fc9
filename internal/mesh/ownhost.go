// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"net/netip"
	"strings"
)

// ownHost says whether a host name or address means the machine that asks: its loopback, where a proxy's administration listens, or its link, where clouds
// hand out credentials. Spellings of an address that resolvers understand though they are no address ("127.1", "0x7f.0.0.1") count too.
func ownHost(host string) bool {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if a, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		a = a.Unmap()
		return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast()
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last != "" && (strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "")
}
