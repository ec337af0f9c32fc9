// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
)

// Config is all that the agent is told.
type Config struct {
	// Envoy is the path of the Envoy binary.
	Envoy string
	// EnvoyArgs are handed to Envoy behind the agent's own arguments.
	EnvoyArgs []string
	// User is the user and group that Envoy runs as; negative for the agent's own.
	User int
	// LogLevel is Envoy's: trace, debug, info, warning, error, critical or off.
	LogLevel string
	// Concurrency is the number of Envoy's worker threads; 0 for one a processor.
	Concurrency int
	// DrainTime is how long Envoy keeps the connections of a filter chain that was replaced; 0 for Envoy's default, 600 s.
	DrainTime time.Duration
	// Restarts is how often an Envoy that ends by itself is started again; 0 to 10.
	Restarts int
	// Drain says how long a proxy that is to end waits.
	Drain Drain
	// ConfigFile is a bootstrap of the user's own, which replaces the agent's; empty for none.
	ConfigFile string
	// Bootstrap is what the agent's own bootstrap is made from. The agent fills in ADSSocket, StatsAddresses and IPv6.
	Bootstrap bootstrap.Settings
	// ControlPlane is the addresses of the control plane; none is allowed only beside ConfigFile.
	ControlPlane []relay.Endpoint
	// Trust is how the agent knows the control plane and proves itself.
	Trust relay.Trust
	// RunDir is the directory of the agent's sockets and files; made if absent, one agent each.
	RunDir string
	// Status is where the agent answers: HOST:PORT or unix:///PATH.
	Status string
}

// Drain is how a proxy that is to end lets go of its clients.
type Drain struct {
	// Minimum is how long to wait although nothing is in flight, for clients that have not yet heard that the proxy ends.
	Minimum time.Duration
	// Limit is how long to wait at most for what is in flight; 0 ends Envoy at once.
	Limit time.Duration
}

// Ranges of settings, as App Mesh's image had them where it had them.
const (
	maxRestarts   = 10
	maxDrainLimit = time.Hour
)

// Validate gathers all faults of the configuration.
func (c *Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Envoy == "" {
		fault("no Envoy binary: give --envoy or TULLE_ENVOY")
	}
	if !slices.Contains(logLevels, c.LogLevel) {
		fault("log level %q: want one of %s", c.LogLevel, strings.Join(logLevels, ", "))
	}
	if c.Concurrency < 0 {
		fault("concurrency %d: want 1 or more, or 0 for one worker a processor", c.Concurrency)
	}
	if c.Restarts < 0 || c.Restarts > maxRestarts {
		fault("restart count %d: want 0 to %d", c.Restarts, maxRestarts)
	}
	if c.Drain.Limit < 0 || c.Drain.Limit > maxDrainLimit {
		fault("drain wait %s: want 0 to %s", c.Drain.Limit, maxDrainLimit)
	}
	if c.Drain.Minimum < 0 {
		fault("least drain wait %s: want 0 or more", c.Drain.Minimum)
	}
	if c.Bootstrap.AdminPort == 0 {
		fault("admin port 0: want 1 to 65535")
	}
	if c.ConfigFile == "" && c.Bootstrap.Proxy.ID == "" {
		fault("no proxy: give --node or APPMESH_RESOURCE_ARN, such as mesh/MESH/virtualNode/NAME")
	}
	if c.ConfigFile == "" && len(c.ControlPlane) == 0 {
		fault("no control plane: give --xds or APPMESH_XDS_ENDPOINT, HOST:PORT or unix:///PATH")
	}
	if err := c.Trust.Check(c.ControlPlane); err != nil {
		fault("control plane: %w", err)
	}
	_, _, err := splitStatus(c.Status)
	return errors.Join(append(faults, err, checkRunDir(c.RunDir))...)
}

func checkRunDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("run directory %q: want an absolute path", dir)
	}
	if len(filepath.Join(dir, adsSocketName)) > maxSocketPath {
		return fmt.Errorf("run directory %q is too long for a unix socket in it: the path may have %d bytes", dir, maxSocketPath-len(adsSocketName)-1)
	}
	return nil
}

// logLevels are those that Envoy knows.
var logLevels = []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "off"}

const (
	adsSocketName = "ads.sock"
	// maxSocketPath is what sun_path of Linux holds, less the closing zero.
	maxSocketPath = 107
)

// splitStatus reads the status address into what net.Listen and net.Dial take.
func splitStatus(address string) (network, where string, err error) {
	if path, ok := strings.CutPrefix(address, "unix://"); ok {
		if !filepath.IsAbs(path) || len(path) > maxSocketPath {
			return "", "", fmt.Errorf("status address %q: want unix:///PATH of at most %d bytes", address, maxSocketPath)
		}
		return "unix", path, nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return "", "", fmt.Errorf("status address %q: want HOST:PORT or unix:///PATH", address)
	}
	return "tcp", address, nil
}
