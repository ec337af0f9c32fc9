// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package bootstrap makes the configuration that Envoy is started with, from a template; the agent calls it.
package bootstrap

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/template"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed bootstrap.yaml.tmpl
var templateText string

// Settings is all that the bootstrap depends on.
type Settings struct {
	// Proxy is who Envoy says it is.
	Proxy Proxy
	// Cluster is Envoy's service cluster, which shows in traces; empty for the proxy's id.
	Cluster string
	// AgentVersion is told to the control plane.
	AgentVersion string
	// IPv6 tells the control plane that this host has IPv6.
	IPv6 bool
	// MetricsExtension asks the control plane for App Mesh's metrics extension and makes its tags.
	MetricsExtension bool
	// ADSSocket is the path of the unix socket that serves Envoy's configuration.
	ADSSocket string
	// AdminPort is the port of Envoy's administration on 127.0.0.1, and of the statistics on StatsAddresses; 1 to 65535.
	AdminPort uint16
	// AdminAccessLog is the file that requests to the administration are logged to; empty for none.
	AdminAccessLog string
	// StatsAddresses are the host's own addresses on which others may read statistics and readiness; none where there is nobody to read.
	StatsAddresses []netip.Addr
	// InitialFetchTimeout ends Envoy's wait for its first configuration; 0 waits for ever.
	InitialFetchTimeout time.Duration
	// StatsFlushInterval is the time between two flushes of statistics; 0 for Envoy's default, 5 s.
	StatsFlushInterval time.Duration
	// OutlierLog is the file that ejected hosts are logged to.
	OutlierLog string
	// StatsTags adds the mesh and the proxy to every statistic.
	StatsTags bool
	// StatsConfig is YAML that replaces the statistics configuration; with stats_config as its only key, or what stands under that key.
	StatsConfig []byte
	// StatsSinks is YAML that replaces the statistics sinks; with stats_sinks as its only key, or what stands under that key.
	StatsSinks []byte
	// DogStatsd is the DogStatsD server that statistics are sent to; StatsSinks outdoes it.
	DogStatsd DogStatsd
}

// DogStatsd is a DogStatsD server.
type DogStatsd struct {
	Enabled bool
	// Address and Port are where the server listens for UDP.
	Address string
	Port    uint16
	// SocketPath is the server's unix datagram socket; it outdoes Address and Port.
	SocketPath string
}

// data is what the template sees: Settings with the files of the user brought into shape.
type data struct {
	Settings

	StatsConfig string
	StatsSinks  string
}

// Render returns the bootstrap as YAML. It fails where a file of the user's is not YAML of the wanted shape; whether its content suits Envoy, Envoy says.
func Render(s Settings) ([]byte, error) {
	if s.Cluster == "" {
		s.Cluster = s.Proxy.ID
	}
	d := data{Settings: s}
	var err error
	if d.StatsConfig, err = section(s.StatsConfig, "stats_config"); err != nil {
		return nil, err
	}
	if d.StatsSinks, err = section(s.StatsSinks, "stats_sinks"); err != nil {
		return nil, err
	}
	t, err := template.New("bootstrap").Funcs(template.FuncMap{
		"quote":   quote,
		"seconds": seconds,
		"indent":  indent,
		"list":    func(items ...string) []string { return items },
	}).Parse(templateText)
	if err != nil {
		return nil, fmt.Errorf("read the bootstrap's template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("make the bootstrap: %w", err)
	}
	return out.Bytes(), nil
}

// section brings a file of the user's to YAML of two-space indentation, without the key that it may stand under.
func section(file []byte, key string) (string, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		return "", nil
	}
	var content any
	if err := yaml.Unmarshal(file, &content); err != nil {
		return "", fmt.Errorf("the file for %s is not YAML: %w", key, err)
	}
	if under, ok := content.(map[string]any); ok && len(under) == 1 && under[key] != nil {
		content = under[key]
	}
	switch content.(type) {
	case map[string]any, []any:
	default:
		return "", fmt.Errorf("the file for %s holds neither a mapping nor a list", key)
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("the file for %s: %w", key, err)
	}
	return string(text), nil
}

// quote writes any value as a string that YAML reads back as it was.
func quote(v any) (string, error) {
	text, err := json.Marshal(fmt.Sprint(v))
	return string(text), err
}

// seconds writes a duration as protobuf's JSON does.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
}

func indent(spaces int, text string) string {
	pad := strings.Repeat(" ", spaces)
	return pad + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+pad)
}
