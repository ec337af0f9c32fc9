// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package bootstrap

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

var update = flag.Bool("update", false, "write the golden outputs anew")

// input is a golden case's file.
type input struct {
	Node                string       `json:"node"`
	Cluster             string       `json:"cluster"`
	IPv6                bool         `json:"ipv6"`
	MetricsExtension    bool         `json:"metricsExtension"`
	StatsTags           bool         `json:"statsTags"`
	AdminAccessLog      string       `json:"adminAccessLog"`
	StatsAddresses      []netip.Addr `json:"statsAddresses"`
	InitialFetchTimeout string       `json:"initialFetchTimeout"`
	StatsFlushInterval  string       `json:"statsFlushInterval"`
	StatsConfig         string       `json:"statsConfig"`
	StatsSinks          string       `json:"statsSinks"`
	DogStatsd           DogStatsd    `json:"dogStatsd"`
}

func (in input) settings(t *testing.T) Settings {
	t.Helper()
	proxy, err := ParseProxy(in.Node)
	if err != nil {
		t.Fatal(err)
	}
	return Settings{
		Proxy: proxy, Cluster: in.Cluster, AgentVersion: "v1.20.0", IPv6: in.IPv6, MetricsExtension: in.MetricsExtension,
		ADSSocket: "/run/tulle/ads.sock", AdminPort: 9901, AdminAccessLog: in.AdminAccessLog, StatsAddresses: in.StatsAddresses,
		InitialFetchTimeout: duration(t, in.InitialFetchTimeout), StatsFlushInterval: duration(t, in.StatsFlushInterval),
		OutlierLog: "/dev/stdout", StatsTags: in.StatsTags, StatsConfig: []byte(in.StatsConfig), StatsSinks: []byte(in.StatsSinks), DogStatsd: in.DogStatsd,
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRender(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	pruneOutputs(t, inputs)
	for _, path := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in.yaml"), func(t *testing.T) {
			t.Parallel()
			var in input
			if err := yaml.UnmarshalStrict(read(t, path), &in); err != nil {
				t.Fatal(err)
			}
			got, err := Render(in.settings(t))
			if err != nil {
				t.Fatal(err)
			}
			golden := outputOf(path)
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(read(t, golden)), string(got)); diff != "" {
				t.Errorf("bootstrap differs from %s (-golden +got), to take it run with -update:\n%s", golden, diff)
			}
			envoytest.Validate(t, golden)
		})
	}
}

func outputOf(path string) string { return strings.TrimSuffix(path, ".in.yaml") + ".out.yaml" }

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// pruneOutputs removes outputs whose inputs are gone, or fails for them.
func pruneOutputs(t *testing.T, inputs []string) {
	t.Helper()
	outputs, err := filepath.Glob("testdata/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range outputs {
		if slices.ContainsFunc(inputs, func(in string) bool { return outputOf(in) == path }) {
			continue
		}
		if !*update {
			t.Errorf("%s has no input: run with -update", path)
			continue
		}
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func TestRenderRefusesFilesThatAreNotYAMLOfTheWantedShape(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config, sinks, want string
	}{
		"broken YAML":            {config: "a: [", want: "the file for stats_config is not YAML"},
		"a word for a mapping":   {config: "nonsense", want: "the file for stats_config holds neither a mapping nor a list"},
		"a number for the sinks": {sinks: "stats_sinks: 3", want: "the file for stats_sinks holds neither a mapping nor a list"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Render(Settings{StatsConfig: []byte(tt.config), StatsSinks: []byte(tt.sinks)})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestParseProxy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		id      string
		want    Proxy
		wantErr string
	}{
		"short form of a node":                {id: "mesh/m/virtualNode/color_ns", want: Proxy{Mesh: "m", Kind: "virtualNode", Name: "color_ns"}},
		"short form of a gateway":             {id: "mesh/m/virtualGateway/in", want: Proxy{Mesh: "m", Kind: "virtualGateway", Name: "in"}},
		"ARN":                                 {id: "arn:aws:appmesh:eu-west-1:123456789012:mesh/m/virtualNode/color", want: Proxy{Mesh: "m", Kind: "virtualNode", Name: "color"}},
		"mesh of another owner":               {id: "mesh/m@210987654321/virtualNode/color", want: Proxy{Mesh: "m", Kind: "virtualNode", Name: "color"}},
		"ARN of another service":              {id: "arn:aws:s3:::mesh/m/virtualNode/x", wantErr: "is not the ARN of an App Mesh resource"},
		"ARN cut short":                       {id: "arn:aws:appmesh:eu-west-1", wantErr: "is not the ARN of an App Mesh resource"},
		"a kind that no proxy stands for":     {id: "mesh/m/virtualRouter/r", wantErr: "does not name a virtual node or virtual gateway"},
		"no name":                             {id: "mesh/m/virtualNode/", wantErr: "does not name a virtual node or virtual gateway"},
		"owner without a mesh":                {id: "mesh/@1/virtualNode/x", wantErr: "has an empty mesh name"},
		"the name of a node and nothing else": {id: "color", wantErr: "does not name a virtual node or virtual gateway"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseProxy(tt.id)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q in it", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.ID = tt.id
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("proxy (-want +got):\n%s", diff)
			}
		})
	}
}
