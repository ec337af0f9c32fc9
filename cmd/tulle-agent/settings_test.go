// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/tulle-mesh/tulle/internal/agent"
	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
)

// clean takes every variable that the agent reads out of the environment, and gives it those of a test.
func clean(t *testing.T, environment map[string]string) {
	t.Helper()
	flags := pflag.NewFlagSet("all", pflag.ContinueOnError)
	new(settings).register(flags)
	new(redirectSettings).register(flags)
	flags.VisitAll(func(flag *pflag.Flag) {
		for _, variable := range flag.Annotations[environmentKey] {
			t.Setenv(variable, "")
		}
	})
	for _, variable := range foreignVariables {
		t.Setenv(variable, "")
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
}

func read(t *testing.T, args ...string) (agent.Config, error) {
	t.Helper()
	var s settings
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.read(flags)
}

func TestEnvironmentOfAppMeshsImageIsRead(t *testing.T) {
	dir := t.TempDir()
	stats := filepath.Join(dir, "stats.yaml")
	if err := os.WriteFile(stats, []byte("stats_tags: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clean(t, map[string]string{
		"APPMESH_RESOURCE_ARN": "arn:aws:appmesh:us-west-2:123456789012:mesh/m@2/virtualNode/n", "APPMESH_VIRTUAL_NODE_NAME": "mesh/old/virtualNode/old",
		"APPMESH_RESOURCE_CLUSTER": "c", "APPMESH_XDS_ENDPOINT": "127.0.0.1:18000", "APPMESH_METRIC_EXTENSION_VERSION": "1",
		"ENVOY_LOG_LEVEL": "WARN", "ENVOY_CONCURRENCY": "2", "ENVOY_ADMIN_ACCESS_PORT": "9999", "ENVOY_ADMIN_ACCESS_LOG_FILE": "/tmp/admin.log",
		"ENVOY_INITIAL_FETCH_TIMEOUT": "30", "ENVOY_STATS_FLUSH_INTERVAL": "2.5", "ENVOY_OUTLIER_DETECTION_EVENT_LOG_PATH": "/tmp/outlier.log",
		"ENVOY_STATS_CONFIG_FILE": stats, "ENABLE_ENVOY_STATS_TAGS": "1", "APPNET_ENVOY_RESTART_COUNT": "5", "LISTENER_DRAIN_WAIT_TIME_S": "60",
		"ENABLE_ENVOY_DOG_STATSD": "1", "STATSD_ADDRESS": "127.0.0.2", "STATSD_PORT": "8126", "STATSD_SOCKET_PATH": "/tmp/dsd.sock",
		"TULLE_ENVOY": "/bin/true", "TULLE_ENVOY_UID": "4242", "TULLE_RUN_DIR": dir, "TULLE_AGENT_STATUS": "127.0.0.1:1",
	})
	got, err := read(t, "--concurrency", "3") // a flag outdoes its variable
	if err != nil {
		t.Fatal(err)
	}
	if len(got.ControlPlane) != 1 || got.ControlPlane[0].String() != "127.0.0.1:18000" {
		t.Errorf("control plane %v", got.ControlPlane)
	}
	got.ControlPlane = nil
	want := agent.Config{
		Envoy: "/bin/true", User: 4242, LogLevel: "warn", Concurrency: 3, Restarts: 5, Drain: agent.Drain{Minimum: 5 * time.Second, Limit: time.Minute},
		RunDir: dir, Status: "127.0.0.1:1",
		Bootstrap: bootstrap.Settings{
			Proxy:   bootstrap.Proxy{ID: "arn:aws:appmesh:us-west-2:123456789012:mesh/m@2/virtualNode/n", Mesh: "m", Kind: "virtualNode", Name: "n"},
			Cluster: "c", AgentVersion: got.Bootstrap.AgentVersion, MetricsExtension: true, AdminPort: 9999, AdminAccessLog: "/tmp/admin.log",
			InitialFetchTimeout: 30 * time.Second, StatsFlushInterval: 2500 * time.Millisecond, OutlierLog: "/tmp/outlier.log", StatsTags: true,
			StatsConfig: []byte("stats_tags: []\n"), DogStatsd: bootstrap.DogStatsd{Enabled: true, Address: "127.0.0.2", Port: 8126, SocketPath: "/tmp/dsd.sock"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
}

func TestWhatTheInjectorSetsForAControlPlaneInTheClusterIsRead(t *testing.T) {
	const root = `-----BEGIN CERTIFICATE-----
MIIBPDCB46ADAgECAgEBMAoGCCqGSM49BAMCMAwxCjAIBgNVBAMTAXQwIBcNNzAw
MTAxMDAwMDAwWhgPMjI0MjAzMTYxMjU2MzJaMAwxCjAIBgNVBAMTAXQwWTATBgcq
-----END CERTIFICATE-----`
	environment := map[string]string{
		"APPMESH_RESOURCE_ARN": "mesh/m/virtualNode/n", "APPMESH_XDS_ENDPOINT": "appmesh-controller-xds.appmesh-system.svc:443", "TULLE_ENVOY": "/bin/true",
		"TULLE_XDS_CA": "", "TULLE_XDS_TOKEN_FILE": "/var/run/secrets/tulle/token", "TULLE_XDS_SERVER_NAME": "other",
	}
	clean(t, environment)
	if _, err := read(t); err == nil || !strings.Contains(err.Error(), "give the roots of the control plane's certificate with --xds-ca or TULLE_XDS_CA") {
		t.Errorf("without roots: %v", err)
	}
	t.Setenv("TULLE_XDS_CA", root)
	if _, err := read(t); err == nil || !strings.Contains(err.Error(), "there is no certificate in the PEM") {
		t.Errorf("with roots that are damaged: %v", err)
	}
	t.Setenv("TULLE_XDS_CA", wholeRoot(t))
	got, err := read(t)
	if err != nil {
		t.Fatal(err)
	}
	want := relay.Trust{CA: strings.TrimSpace(wholeRoot(t)), ServerName: "other", TokenFile: "/var/run/secrets/tulle/token"}
	if diff := cmp.Diff(want, got.Trust); diff != "" {
		t.Errorf("trust (-want +got):\n%s", diff)
	}
}

// wholeRoot is a certificate that can be read: that of a server of the standard library's tests.
func wholeRoot(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestDefaultsAreThoseOfAppMeshsImage(t *testing.T) {
	clean(t, map[string]string{"APPMESH_VIRTUAL_NODE_NAME": "mesh/m/virtualNode/n"})
	got, err := read(t, "--xds", "unix:///run/x.sock", "--envoy", "/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	user := -1
	if os.Geteuid() == 0 {
		user = 1337
	}
	if got.User != user || got.Restarts != 3 || got.Drain.Limit != 20*time.Second || got.Bootstrap.AdminPort != 9901 || got.LogLevel != "info" ||
		got.Bootstrap.OutlierLog != "/dev/stdout" || got.Bootstrap.Proxy.Name != "n" || got.Bootstrap.InitialFetchTimeout != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFaultsAreGatheredAndNameTheVariable(t *testing.T) {
	clean(t, map[string]string{
		"APPMESH_RESOURCE_ARN": "color", "APPMESH_XDS_ENDPOINT": "appmesh-envoy-management.us-west-2.amazonaws.com:443", "ENVOY_CONCURRENCY": "many",
		"ENVOY_ADMIN_ACCESS_PORT": "99999", "LISTENER_DRAIN_WAIT_TIME_S": "-5", "ENABLE_ENVOY_STATS_TAGS": "maybe", "ENVOY_STATS_CONFIG_FILE": "/does/not/exist",
		"TULLE_ENVOY": "/does/not/exist",
	})
	_, err := read(t)
	if _, wrong := errors.AsType[*usageError](err); !wrong {
		t.Fatalf("error %v is not one of use", err)
	}
	for _, want := range []string{
		`ENVOY_CONCURRENCY=many: `, `ENVOY_ADMIN_ACCESS_PORT=99999: "99999" is not a port: want 1 to 65535`, `LISTENER_DRAIN_WAIT_TIME_S=-5: "-5s" is not a time`,
		`ENABLE_ENVOY_STATS_TAGS=maybe: `, `node: "color" does not name a virtual node`, `plain text goes to loopback addresses and unix sockets alone`,
		`statistics configuration: open /does/not/exist`, `no Envoy: `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

func TestWhatNobodyAskedForIsWrongUse(t *testing.T) {
	clean(t, nil)
	for _, args := range [][]string{{"bogus"}, {"ready", "stray"}, {"redirect", "--nope"}, {"ready", "--wait", "soon"}} {
		command := newCommand()
		command.SetArgs(args)
		if err := command.Execute(); err == nil || !isUse(err) {
			t.Errorf("tulle-agent %s: error %v is not one of use", strings.Join(args, " "), err)
		}
	}
}

func TestVariablesWithoutEffectAreNamed(t *testing.T) {
	clean(t, map[string]string{"ENABLE_ENVOY_XRAY_TRACING": "1", "APPMESH_PREVIEW": "0", "HC_POLL_INTERVAL_MS": ""})
	if diff := cmp.Diff([]string{"APPMESH_PREVIEW", "ENABLE_ENVOY_XRAY_TRACING"}, withoutEffect()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(foreignVariables) {
		t.Error("the list is not sorted")
	}
}

func TestRedirectReadsItsEnvironment(t *testing.T) {
	clean(t, map[string]string{
		"APPMESH_START_ENABLED": "1", "APPMESH_IGNORE_UID": "1500", "APPMESH_IGNORE_GID": "1600", "APPMESH_ENVOY_INGRESS_PORT": "16000", "APPMESH_ENVOY_EGRESS_PORT": "16001",
		"APPMESH_APP_PORTS": "8080,9090", "APPMESH_EGRESS_IGNORED_IP": "192.0.2.1", "APPMESH_EGRESS_IGNORED_PORTS": "2049", "APPMESH_ENABLE_IPV6": "0",
	})
	var out bytes.Buffer
	command := newCommand()
	command.SetOut(&out)
	command.SetArgs([]string{"redirect", "--dry-run"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	want := `# IPv4
iptables-restore --wait --noflush <<'EOF'
*nat
-N APPMESH_EGRESS
-A APPMESH_EGRESS -d 127.0.0.0/8 -j RETURN
-A APPMESH_EGRESS -m owner --uid-owner 1500 -j RETURN
-A APPMESH_EGRESS -m owner --gid-owner 1600 -j RETURN
-A APPMESH_EGRESS -p tcp -m multiport --dports 22,2049 -j RETURN
-A APPMESH_EGRESS -d 192.0.2.1/32 -p tcp -j RETURN
-A APPMESH_EGRESS -p tcp -j REDIRECT --to-ports 16001
-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j APPMESH_EGRESS
-N APPMESH_INGRESS
-A APPMESH_INGRESS -p tcp -m multiport --dports 8080,9090 -j REDIRECT --to-ports 16000
-A PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j APPMESH_INGRESS
COMMIT
EOF
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestRedirectRefusesBadSettingsAsWrongUse(t *testing.T) {
	clean(t, map[string]string{"APPMESH_APP_PORTS": "http", "APPMESH_IGNORE_UID": "envoy", "APPMESH_EGRESS_IGNORED_IP": "10.0.0"})
	command := newCommand()
	command.SetArgs([]string{"redirect", "--dry-run"})
	err := command.Execute()
	if _, wrong := errors.AsType[*usageError](err); !wrong {
		t.Fatalf("error %v is not one of use", err)
	}
	for _, want := range []string{`--app-ports: "http" is not a port`, `--ignore-uid: "envoy" is not the number`, `--egress-ignored-ips: "10.0.0" is neither`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

func TestEveryCommandHasAnExampleInItsHelp(t *testing.T) {
	for _, command := range newCommand().Commands() {
		if command.Example == "" || command.Short == "" {
			t.Errorf("%s has no example or no summary", command.Name())
		}
	}
}
