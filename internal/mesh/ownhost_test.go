// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "testing"

func TestHostsThatMeanTheMachineThatAsksAreKnown(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost.": true, "a.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "[::1]": true, "::ffff:127.0.0.1": true,
		"0.0.0.0": true, "::": true, "169.254.169.254": true, "fe80::1": true, "127.1": true, "2130706433": true, "0x7f.0.0.1": true, "10.0.0.0x1": true,
		"": false, "localhost.example.com": false, "notlocalhost": false, "10.0.0.1": false, "2001:db8::1": false, "api.shop.svc.cluster.local": false, "v1": false, "a.x0": false,
	} {
		if got := ownHost(host); got != want {
			t.Errorf("ownHost(%q) = %t, want %t", host, got, want)
		}
	}
}
