// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/envoy"
)

// TestEnvoyAcceptsGoldens gives the configuration of each golden input to the real Envoy, once as it is delivered and once with everything inline.
func TestEnvoyAcceptsGoldens(t *testing.T) {
	t.Parallel()
	binary := envoyBinary(t)
	for _, input := range inputs(t) {
		t.Run(strings.TrimSuffix(filepath.Base(input), inputSuffix), func(t *testing.T) {
			t.Parallel()
			v, sets := view(t, scene(t, input))
			static, _ := envoy.Static(v, sets, envoy.StaticOptions{})
			if err := validate(t, binary, static); err != nil {
				t.Error(err)
			}
			made, _ := envoy.Build(v)
			if err := validate(t, binary, delivered(t, made)); err != nil {
				t.Error(err)
			}
		})
	}
}

// envoyBinary finds the real Envoy. On a machine of continuous integration it must be there.
func envoyBinary(t *testing.T) string {
	t.Helper()
	path, given := os.LookupEnv("TULLE_ENVOY")
	if !given {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(cache, "tulle", "envoy", "1.40.0", "envoy")
	}
	if _, err := os.Stat(path); err != nil {
		if _, ci := os.LookupEnv("CI"); ci {
			t.Fatalf("no Envoy at %s: run hack/envoy.sh", path)
		}
		t.Skipf("no Envoy at %s: run hack/envoy.sh, or set TULLE_ENVOY", path)
	}
	return path
}

// delivered puts what a control plane would send into a bootstrap, so that Envoy reads it at once; routes and endpoints stay out.
func delivered(t *testing.T, made envoy.Resources) *bootstrapv3.Bootstrap {
	t.Helper()
	const plane = "plane"
	out := &bootstrapv3.Bootstrap{
		Node: &corev3.Node{Id: "test", Cluster: "test"},
		DynamicResources: &bootstrapv3.Bootstrap_DynamicResources{AdsConfig: &corev3.ApiConfigSource{
			ApiType: corev3.ApiConfigSource_DELTA_GRPC, TransportApiVersion: corev3.ApiVersion_V3,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: plane}}}},
		}},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{{Name: plane, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}}}},
	}
	for _, r := range made.Clusters {
		out.StaticResources.Clusters = append(out.StaticResources.Clusters, as[*clusterv3.Cluster](t, r.Message))
	}
	for _, r := range made.Listeners {
		out.StaticResources.Listeners = append(out.StaticResources.Listeners, as[*listenerv3.Listener](t, r.Message))
	}
	return out
}

func as[M proto.Message](t *testing.T, m proto.Message) M {
	t.Helper()
	out, ok := m.(M)
	if !ok {
		t.Fatalf("a %T", m)
	}
	return out
}

// validate asks Envoy whether it takes a bootstrap; what it says is in the error.
func validate(t *testing.T, binary string, bootstrap *bootstrapv3.Bootstrap) error {
	t.Helper()
	text, err := protojson.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "--mode", "validate", "--log-level", "error", "-c", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("Envoy refuses it: %w\n%s", err, out)
	}
	return nil
}
