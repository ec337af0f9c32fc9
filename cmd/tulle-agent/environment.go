// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// environmentKey marks a flag with the variables that also set it.
const environmentKey = "tulle-environment"

// fromEnvironment lets variables set a flag that is not given; the first that is set and not empty wins. They are added to the flag's help.
func fromEnvironment(flags *pflag.FlagSet, name string, variables ...string) {
	flag := flags.Lookup(name)
	flag.Usage += " [$" + strings.Join(variables, ", $") + "]"
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[environmentKey] = variables
}

// readEnvironment sets the flags that are not given from their variables. All faults are gathered.
func readEnvironment(flags *pflag.FlagSet) error {
	var faults []error
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			return
		}
		for _, variable := range flag.Annotations[environmentKey] {
			value, _ := os.LookupEnv(variable)
			if value = strings.TrimSpace(value); value == "" {
				continue
			}
			if err := flags.Set(flag.Name, value); err != nil {
				faults = append(faults, fmt.Errorf("%s=%s: %w", variable, value, errors.Unwrap(err)))
			}
			return
		}
	})
	if len(faults) > 0 {
		return &usageError{errors.Join(faults...)}
	}
	return nil
}

// withoutEffect returns those variables of App Mesh's Envoy image that are set and mean nothing here.
func withoutEffect() []string {
	var set []string
	for _, variable := range foreignVariables {
		if value, ok := os.LookupEnv(variable); ok && value != "" {
			set = append(set, variable)
		}
	}
	return set
}

// foreignVariables are read by App Mesh's Envoy image and not by this agent, sorted. Source: App Mesh User Guide, "Envoy configuration variables".
var foreignVariables = []string{
	"APPMESH_DUALSTACK_ENDPOINT",
	"APPMESH_FIPS_ENDPOINT",
	"APPMESH_PLATFORM_APP_MESH_CONTROLLER_VERSION",
	"APPMESH_PLATFORM_K8S_POD_UID",
	"APPMESH_PLATFORM_K8S_VERSION",
	"APPMESH_PREVIEW",
	"APPMESH_SDS_SOCKET_PATH",
	"APPMESH_SET_TRACING_DECISION",
	"APPMESH_SIGNING_NAME",
	"APPNET_AGENT_ADMIN_MODE",
	"APPNET_AGENT_ADMIN_UDS_PATH",
	"APPNET_AGENT_HTTP_BIND_ADDRESS",
	"APPNET_AGENT_HTTP_PORT",
	"APPNET_AGENT_LOGGING_RESET_TIMEOUT",
	"APPNET_AGENT_MAX_LOG_FILE_SIZE",
	"APPNET_AGENT_MAX_RETENTION_COUNT",
	"APPNET_AGENT_POLL_ENVOY_READINESS_INTERVAL_S",
	"APPNET_AGENT_POLL_ENVOY_READINESS_TIMEOUT_S",
	"APPNET_CONTAINER_IP_MAPPING",
	"APPNET_ENABLE_RELAY_MODE_FOR_XDS",
	"APPNET_ENVOY_LOG_DESTINATION",
	"APPNET_ENVOY_LOG_NAME",
	"APPNET_FIPS_MODE_ENABLED",
	"APPNET_LISTENER_PORT_MAPPING",
	"APPNET_MANAGEMENT_DOMAIN_NAME",
	"APPNET_MANAGEMENT_PORT",
	"APPNET_RELAY_LISTENER_UDS_PATH",
	"DATADOG_TRACER_ADDRESS",
	"DATADOG_TRACER_PORT",
	"DISABLE_HOT_RESTART",
	"ENABLE_ENVOY_DATADOG_TRACING",
	"ENABLE_ENVOY_JAEGER_TRACING",
	"ENABLE_ENVOY_XRAY_TRACING",
	"ENABLE_STATS_SNAPSHOT",
	"ENVOY_ADMIN_ACCESS_ENABLE_IPV6",
	"ENVOY_ADMIN_MODE",
	"ENVOY_ENABLE_TCP_POOL_IDLE_TIMEOUT",
	"ENVOY_NO_EXTENSION_LOOKUP_BY_NAME",
	"ENVOY_RESOURCES_CONFIG_FILE",
	"ENVOY_SKIP_DEPRECATED_LOGS",
	"ENVOY_TRACING_CFG_FILE",
	"ENVOY_USE_HTTP_CLIENT_TO_FETCH_AWS_CREDENTIALS",
	"HC_DISCONNECTED_TIMEOUT_S",
	"HC_POLL_INTERVAL_MS",
	"JAEGER_TRACER_ADDRESS",
	"JAEGER_TRACER_PORT",
	"JAEGER_TRACER_VERSION",
	"MAX_REQUESTS_PER_IO_CYCLE",
	"PID_POLL_INTERVAL_MS",
	"RELAY_BUFFER_LIMIT_BYTES",
	"RELAY_STREAM_IDLE_TIMEOUT",
	"XRAY_DAEMON_PORT",
	"XRAY_SAMPLING_RATE",
	"XRAY_SAMPLING_RULE_MANIFEST",
	"XRAY_SEGMENT_NAME",
}
