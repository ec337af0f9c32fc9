// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tulle-mesh/tulle/internal/agent"
	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
	"github.com/tulle-mesh/tulle/internal/version"
)

// envoyUser is the user that Envoy runs as when the agent is root; its traffic is the one that the redirect leaves alone.
const envoyUser = 1337

// settings are the flags of run and bootstrap before they are read together.
type settings struct {
	config      agent.Config
	node        string
	xds         string
	envoy       string
	user        int
	statsConfig string
	statsSinks  string
}

// register adds the flags, each with the variables that also set it.
func (s *settings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.node, "node", "", "the virtual node or gateway that Envoy stands for: mesh/MESH/virtualNode/NAME, or its ARN")
	fromEnvironment(flags, "node", "APPMESH_RESOURCE_ARN", "APPMESH_RESOURCE_NAME", "APPMESH_VIRTUAL_NODE_NAME")
	s.registerControlPlane(flags)
	registerStatus(flags, &s.config.Status)
	s.registerProcess(flags)
	s.registerBootstrap(flags)
	s.registerStats(flags)
}

func (s *settings) registerControlPlane(flags *pflag.FlagSet) {
	trust := &s.config.Trust
	flags.StringVar(&s.xds, "xds", "", "control plane, HOST:PORT or unix:///PATH; several separated by commas")
	fromEnvironment(flags, "xds", "APPMESH_XDS_ENDPOINT")
	flags.StringVar(&trust.CA, "xds-ca", "", "roots of the control plane's certificate: a file, or PEM text; without it only loopback addresses and unix sockets may be used")
	fromEnvironment(flags, "xds-ca", "TULLE_XDS_CA")
	flags.StringVar(&trust.ServerName, "xds-server-name", "", "name in the control plane's certificate (default: the host of --xds)")
	fromEnvironment(flags, "xds-server-name", "TULLE_XDS_SERVER_NAME")
	flags.StringVar(&trust.TokenFile, "xds-token-file", "", "file of the token that proves to the control plane which pod this is; read again for every stream")
	fromEnvironment(flags, "xds-token-file", "TULLE_XDS_TOKEN_FILE")
}

// registerStatus adds the flag that the agent and those who ask it have in common.
func registerStatus(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "status", "127.0.0.1:9902", "where the agent answers: HOST:PORT or unix:///PATH")
	fromEnvironment(flags, "status", "TULLE_AGENT_STATUS")
}

func (s *settings) registerProcess(flags *pflag.FlagSet) {
	c := &s.config
	flags.StringVar(&s.envoy, "envoy", "envoy", "Envoy's binary: a path, or a name in PATH")
	fromEnvironment(flags, "envoy", "TULLE_ENVOY")
	flags.IntVar(&s.user, "uid", -1, "user and group that Envoy runs as (-1: 1337 when root, else the agent's own)")
	fromEnvironment(flags, "uid", "TULLE_ENVOY_UID")
	flags.StringVar(&c.RunDir, "run-dir", filepath.Join(os.TempDir(), "tulle-agent"), "directory for the agent's sockets and files, one agent each")
	fromEnvironment(flags, "run-dir", "TULLE_RUN_DIR")
	flags.StringVar(&c.LogLevel, "log-level", "info", "Envoy's log level")
	fromEnvironment(flags, "log-level", "ENVOY_LOG_LEVEL")
	flags.IntVar(&c.Concurrency, "concurrency", 0, "Envoy's worker threads (0: one a processor)")
	fromEnvironment(flags, "concurrency", "ENVOY_CONCURRENCY")
	flags.IntVar(&c.Restarts, "restarts", 3, "how often an Envoy that ends by itself is started again, 0 to 10")
	fromEnvironment(flags, "restarts", "APPNET_ENVOY_RESTART_COUNT")
	c.Drain = agent.Drain{Minimum: 5 * time.Second, Limit: 20 * time.Second}
	flags.Var(secondsValue{&c.Drain.Limit}, "drain-wait", "how long to wait for requests in flight before the end; 0 ends at once")
	fromEnvironment(flags, "drain-wait", "LISTENER_DRAIN_WAIT_TIME_S")
	flags.Var(secondsValue{&c.Drain.Minimum}, "drain-minimum", "how long to wait before the end though nothing is in flight")
	fromEnvironment(flags, "drain-minimum", "TULLE_DRAIN_MINIMUM")
	flags.Var(secondsValue{&c.DrainTime}, "drain-time", "how long Envoy keeps connections of a replaced filter chain (0: Envoy's own 600 s)")
}

func (s *settings) registerBootstrap(flags *pflag.FlagSet) {
	c, b := &s.config, &s.config.Bootstrap
	flags.StringVar(&c.ConfigFile, "config-file", "", "a bootstrap of your own in place of the agent's")
	fromEnvironment(flags, "config-file", "ENVOY_CONFIG_FILE")
	flags.StringVar(&b.Cluster, "cluster", "", "Envoy's service cluster (default: the node)")
	fromEnvironment(flags, "cluster", "APPMESH_RESOURCE_CLUSTER", "APPMESH_VIRTUAL_NODE_CLUSTER")
	b.AdminPort = 9901
	flags.Var(portValue{&b.AdminPort}, "admin-port", "port of Envoy's administration on 127.0.0.1, and of statistics on the host's other addresses")
	fromEnvironment(flags, "admin-port", "ENVOY_ADMIN_ACCESS_PORT")
	flags.StringVar(&b.AdminAccessLog, "admin-access-log", "", "file for the access log of Envoy's administration")
	fromEnvironment(flags, "admin-access-log", "ENVOY_ADMIN_ACCESS_LOG_FILE")
	flags.Var(secondsValue{&b.InitialFetchTimeout}, "initial-fetch-timeout", "end of Envoy's wait for its first configuration; 0 waits for ever")
	fromEnvironment(flags, "initial-fetch-timeout", "ENVOY_INITIAL_FETCH_TIMEOUT")
	flags.StringVar(&b.OutlierLog, "outlier-log", "/dev/stdout", "file for the log of ejected hosts")
	fromEnvironment(flags, "outlier-log", "ENVOY_OUTLIER_DETECTION_EVENT_LOG_PATH")
}

func (s *settings) registerStats(flags *pflag.FlagSet) {
	b := &s.config.Bootstrap
	flags.Var(secondsValue{&b.StatsFlushInterval}, "stats-flush-interval", "time between two flushes of statistics (0: Envoy's own 5 s)")
	fromEnvironment(flags, "stats-flush-interval", "ENVOY_STATS_FLUSH_INTERVAL")
	flags.BoolVar(&b.StatsTags, "stats-tags", false, "tag every statistic with the mesh and the node")
	fromEnvironment(flags, "stats-tags", "ENABLE_ENVOY_STATS_TAGS")
	flags.BoolVar(&b.MetricsExtension, "metrics-extension", false, "ask for App Mesh's metrics extension")
	fromEnvironment(flags, "metrics-extension", "APPMESH_METRIC_EXTENSION_VERSION")
	flags.StringVar(&s.statsConfig, "stats-config", "", "YAML file that replaces Envoy's stats_config")
	fromEnvironment(flags, "stats-config", "ENVOY_STATS_CONFIG_FILE")
	flags.StringVar(&s.statsSinks, "stats-sinks", "", "YAML file that replaces Envoy's stats_sinks")
	fromEnvironment(flags, "stats-sinks", "ENVOY_STATS_SINKS_CFG_FILE")
	b.DogStatsd = bootstrap.DogStatsd{Address: "127.0.0.1", Port: 8125}
	flags.BoolVar(&b.DogStatsd.Enabled, "dogstatsd", false, "send statistics to a DogStatsD server")
	fromEnvironment(flags, "dogstatsd", "ENABLE_ENVOY_DOG_STATSD")
	flags.StringVar(&b.DogStatsd.Address, "statsd-address", b.DogStatsd.Address, "IP address of the DogStatsD server")
	fromEnvironment(flags, "statsd-address", "STATSD_ADDRESS")
	flags.Var(portValue{&b.DogStatsd.Port}, "statsd-port", "UDP port of the DogStatsD server")
	fromEnvironment(flags, "statsd-port", "STATSD_PORT")
	flags.StringVar(&b.DogStatsd.SocketPath, "statsd-socket", "", "unix socket of the DogStatsD server, in place of address and port")
	fromEnvironment(flags, "statsd-socket", "STATSD_SOCKET_PATH")
}

// read brings flags and environment together into the agent's configuration, valid and complete. All faults are gathered.
func (s *settings) read(flags *pflag.FlagSet) (agent.Config, error) {
	faults := []error{readEnvironment(flags)}
	fault := func(err error) { faults = append(faults, err) }
	c := s.config
	c.LogLevel = strings.ToLower(c.LogLevel)
	c.Bootstrap.AgentVersion = version.String()
	c.User = s.user
	if os.Geteuid() == 0 && s.user < 0 {
		c.User = envoyUser
	}
	if s.user == os.Geteuid() {
		c.User = -1
	}
	var err error
	if c.Envoy, err = exec.LookPath(s.envoy); err != nil {
		fault(fmt.Errorf("no Envoy: %w: give its path with --envoy or TULLE_ENVOY", err))
		c.Envoy = s.envoy
	}
	if s.node != "" {
		if c.Bootstrap.Proxy, err = bootstrap.ParseProxy(s.node); err != nil {
			fault(fmt.Errorf("node: %w", err))
			c.Bootstrap.Proxy.ID = s.node
		}
	}
	if s.xds != "" {
		if c.ControlPlane, err = relay.ParseEndpoints(s.xds); err != nil {
			fault(fmt.Errorf("control plane: %w", err))
			c.ControlPlane = make([]relay.Endpoint, 1)
		}
	}
	if c.Bootstrap.StatsConfig, err = readFile(s.statsConfig); err != nil {
		fault(fmt.Errorf("statistics configuration: %w", err))
	}
	if c.Bootstrap.StatsSinks, err = readFile(s.statsSinks); err != nil {
		fault(fmt.Errorf("statistics sinks: %w", err))
	}
	fault(c.Validate())
	if err := errors.Join(faults...); err != nil {
		return agent.Config{}, &usageError{err}
	}
	return c, nil
}

// readFile returns nothing where there is no path.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return os.ReadFile(path) //nolint:gosec // G304: the operator names the file
}
