// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBackendsOfOnePort(t *testing.T) {
	t.Parallel()
	const field = " spec.backends[1].virtualService.virtualServiceName"
	base := newModel(aMesh(), aClient("c", "a.prod", "b.prod"), aService("a.prod", byNode("a")), aService("b.prod", byNode("b")))
	for name, c := range map[string]struct {
		model    model
		answers  []string
		findings []string
	}{
		"HTTP services share a port": {
			base.with(aNode("a", "http/80"), aNode("b", "grpc/80")),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			nil,
		},
		"TCP services with addresses of their own share a port": {
			base.with(aNode("a", "tcp/80"), aNode("b", "tcp/80"), aKubernetesService("a", "10.0.0.1", 80), aKubernetesService("b", "10.0.0.2", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			nil,
		},
		"a TCP service without an address gets the rest of a port": {
			base.with(aNode("a", "tcp/80"), aNode("b", "tcp/80"), aKubernetesService("b", "10.0.0.2", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			nil,
		},
		"two TCP services without addresses stay, with a finding against the second": {
			base.with(aNode("a", "tcp/80"), aNode("b", "tcp/80")),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			[]string{"warning PortConflict VirtualNode/c" + field},
		},
		"two TCP services of one address stay, with a finding against the second": {
			base.with(aNode("a", "tcp/80"), aNode("b", "tcp/80"), aKubernetesService("a", "10.0.0.1", 80), aKubernetesService("b", "10.0.0.1", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			[]string{"warning PortConflict VirtualNode/c" + field},
		},
		"TCP with an address of its own and HTTP share a port": {
			base.with(aNode("a", "http/80"), aNode("b", "tcp/80"), aKubernetesService("b", "10.0.0.2", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			nil,
		},
		"TCP without an address beside HTTP is an error, and HTTP gets the connections": {
			base.with(aNode("a", "http/80"), aNode("b", "tcp/80", "tcp/81")),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100", "b.prod:81 b.prod -> b:81=100"},
			[]string{"error PortConflict VirtualNode/c" + field},
		},
		"TCP without an address beside HTTP with one is an error too, since HTTP is known by host name": {
			base.with(aNode("a", "http/80"), aNode("b", "tcp/80"), aKubernetesService("a", "10.0.0.1", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100", "b.prod:80 b.prod -> b:80=100"},
			[]string{"error PortConflict VirtualNode/c" + field},
		},
		"TCP without an address beside HTTP on port 443 has the connections that name it": {
			base.with(aNode("a", "http/443"), aNode("b", "tcp/443")),
			[]string{"a.prod:443 a.prod -> a:443=100", "b.prod:443 b.prod -> b:443=100"},
			[]string{"warning PortConflict VirtualNode/c" + field},
		},
		"TCP with HTTP's own address is left out": {
			base.with(aNode("a", "http/80"), aNode("b", "tcp/80"), aKubernetesService("a", "10.0.0.1", 80), aKubernetesService("b", "10.0.0.1", 80)),
			[]string{"a.prod:80 a.prod -> a:80=100"},
			[]string{"error PortConflict VirtualNode/c" + field},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, findings := c.model.view(t, "c")
			if diff := cmp.Diff(c.answers, answers(v), equateEmpty); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}
