// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/xds"
)

func TestNewResource(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		name string
		m    proto.Message
		err  string // "" for none
	}{
		"a cluster under its name":    {"c1", &clusterv3.Cluster{Name: "c1"}, ""},
		"a cluster under another":     {"c1", &clusterv3.Cluster{Name: "c2"}, `resource "c1": the envoy.config.cluster.v3.Cluster inside is named "c2"`},
		"no name":                     {"", &clusterv3.Cluster{}, "without a name"},
		"a type that no proxy gets":   {"n1", &corev3.Node{Id: "n1"}, "envoy.config.core.v3.Node is not delivered"},
		"text that is no valid UTF-8": {"c1", &clusterv3.Cluster{Name: "c1", AltStatName: "\xff"}, `resource "c1": marshal`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := xds.NewResource(test.name, test.m, xds.Traits{})
			if test.err == "" {
				if err != nil || r.Name() != test.name || r.TypeURL() != xds.ClusterType || r.Size() == 0 {
					t.Errorf("got %v, %v", r, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestVersionIsAHashOfTheContent(t *testing.T) {
	t.Parallel()
	a, b, c := eds(t, "c1", "1"), cluster(t, "c1", "1", xds.Traits{Origin: "another"}), eds(t, "c1", "2")
	if a.Version() != b.Version() || a.Version() == c.Version() || len(a.Version()) != 12 {
		t.Errorf("versions %q, %q (equal content), %q (other content)", a.Version(), b.Version(), c.Version())
	}
}
