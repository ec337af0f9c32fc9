// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
)

func TestLoadOf(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		numbers map[string]int64
		want    load
	}{
		"nothing": {},
		"requests of all connection managers": {
			numbers: map[string]int64{
				"http.ingress.downstream_rq_active": 2, "http.egress.downstream_rq_active": 1, "http.ingress.http.8080.downstream_rq_active": 4,
				"http.ingress.downstream_rq_total": 20, "http.egress.downstream_rq_total": 10,
			},
			want: load{requests: 7, total: 30},
		},
		"an idle connection of HTTP is no load": {
			numbers: map[string]int64{"http.ingress.downstream_cx_active": 3, "listener.0.0.0.0_15000.downstream_cx_active": 3, "listener.0.0.0.0_15000.downstream_cx_total": 9},
			want:    load{total: 9},
		},
		"what is not HTTP is TCP": {
			numbers: map[string]int64{"http.egress.downstream_cx_active": 1, "listener.[__]_15001.downstream_cx_active": 3},
			want:    load{connections: 2},
		},
		"the administration and single threads do not count": {
			numbers: map[string]int64{
				"http.admin.downstream_rq_active": 1, "http.agent_stats.downstream_rq_active": 1, "http.agent_stats.downstream_cx_active": 1,
				"listener.admin.downstream_cx_active": 1, "listener.agent_stats.downstream_cx_active": 1,
				"listener.admin.main_thread.downstream_cx_active": 1, "listener.0.0.0.0_15000.worker_0.downstream_cx_active": 1,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := loadOf(tt.numbers); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestConfigured(t *testing.T) {
	t.Parallel()
	const cds, lds, active = "cluster_manager.cds.update_", "listener_manager.lds.update_", "listener_manager.total_listeners_active"
	tests := map[string]struct {
		numbers map[string]int64
		want    string
	}{
		"both came":                              {numbers: map[string]int64{cds + "success": 1, lds + "success": 1}},
		"nothing came":                           {want: "no clusters from the control plane yet"},
		"clusters alone came":                    {numbers: map[string]int64{cds + "success": 1}, want: "no listeners from the control plane yet"},
		"listeners were refused in part":         {numbers: map[string]int64{cds + "success": 1, lds + "rejected": 1, active: 2}},
		"all listeners were refused":             {numbers: map[string]int64{cds + "success": 1, lds + "rejected": 1, active: 1}, want: "refused all listeners"},
		"clusters were refused, listeners taken": {numbers: map[string]int64{cds + "rejected": 1, lds + "success": 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := configured(tt.numbers)
			if (tt.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestEndedChild(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stat string
		want bool
	}{
		"an ended child":                      {stat: "12 (sh) Z 7 1 1", want: true},
		"a child that runs":                   {stat: "12 (sh) S 7 1 1"},
		"somebody else's child":               {stat: "12 (sh) Z 70 1 1"},
		"a name made to look like an end":     {stat: "12 (x) Z 7 1 () S 7 1 1"},
		"a name with spaces and parentheses":  {stat: "12 (a (b) c) Z 7 1 1", want: true},
		"a line cut short":                    {stat: "12 (sh) Z"},
		"nothing at all, since it ended then": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := endedChild(tt.stat, 7); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	file := filepath.Join(dir, "closed", "open", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	const other = 4242
	if err := reachable(file, other); err != nil {
		t.Errorf("all is open: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := reachable(file, other); err == nil || !strings.Contains(err.Error(), "user 4242 may not pass "+filepath.Join(dir, "closed")) {
		t.Errorf("a closed directory on the way: %v", err)
	}
	if err := reachable(file, uint32(os.Geteuid())); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

func TestValidateGathersAllFaults(t *testing.T) {
	t.Parallel()
	proxy, err := bootstrap.ParseProxy("mesh/m/virtualNode/n")
	if err != nil {
		t.Fatal(err)
	}
	good := Config{
		Envoy: "/envoy", LogLevel: "info", Restarts: 3, Drain: Drain{Limit: 20 * time.Second}, Bootstrap: bootstrap.Settings{Proxy: proxy, AdminPort: 9901},
		ControlPlane: make([]relay.Endpoint, 1), RunDir: "/run/tulle", Status: "127.0.0.1:9902",
	}
	tests := map[string]struct {
		change func(*Config)
		want   []string
	}{
		"good":                        {change: func(*Config) {}},
		"a bootstrap of the user's":   {change: func(c *Config) { c.ConfigFile, c.ControlPlane, c.Bootstrap.Proxy = "/x", nil, bootstrap.Proxy{} }},
		"no proxy, no control plane":  {change: func(c *Config) { c.ControlPlane, c.Bootstrap.Proxy = nil, bootstrap.Proxy{} }, want: []string{"no proxy: give --node", "no control plane: give --xds"}},
		"too many restarts":           {change: func(c *Config) { c.Restarts = 11 }, want: []string{"restart count 11: want 0 to 10"}},
		"an unknown log level":        {change: func(c *Config) { c.LogLevel = "loud" }, want: []string{`log level "loud": want one of trace`}},
		"a drain of a day":            {change: func(c *Config) { c.Drain.Limit = 24 * time.Hour }, want: []string{"drain wait 24h0m0s: want 0 to 1h0m0s"}},
		"a relative run directory":    {change: func(c *Config) { c.RunDir = "run" }, want: []string{`run directory "run": want an absolute path`}},
		"a run directory too long":    {change: func(c *Config) { c.RunDir = "/" + strings.Repeat("x", 100) }, want: []string{"too long for a unix socket"}},
		"a status address of nothing": {change: func(c *Config) { c.Status = "x" }, want: []string{`status address "x": want HOST:PORT or unix:///PATH`}},
		"negative numbers": {
			change: func(c *Config) { c.Concurrency, c.Drain.Minimum, c.Restarts = -1, -1, -1 },
			want:   []string{"concurrency -1", "least drain wait -1ns", "restart count -1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := good
			tt.change(&c)
			err := c.Validate()
			if err == nil {
				if len(tt.want) > 0 {
					t.Fatalf("no error, want %q", tt.want)
				}
				return
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in:\n%v", want, err)
				}
			}
		})
	}
}

func TestEnvoyArgumentsNameNoWorkersUnlessAsked(t *testing.T) {
	t.Parallel()
	p := &process{config: Config{LogLevel: "info"}}
	want := []string{"-c", "b.yaml", "--disable-hot-restart", "--drain-strategy", "gradual", "--log-level", "info"}
	if diff := cmp.Diff(want, p.arguments("b.yaml")); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
}
