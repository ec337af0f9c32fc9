// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/version"
)

// envTokenFile names the file of the proxy's token. A container that has it was injected.
const envTokenFile = "TULLE_XDS_TOKEN_FILE" //nolint:gosec // G101: the name of a variable

// variable is one that the proxy gets.
type variable struct {
	corev1.EnvVar

	// fixed says that the pod's own value gives way: who the proxy is, whom it trusts, and where it is asked for health.
	fixed bool
}

// variables are what the proxy is told, sorted.
func (s *subject) variables() ([]variable, error) {
	var list []variable
	add := func(fixed bool, name, value string) {
		list = append(list, variable{EnvVar: corev1.EnvVar{Name: name, Value: value}, fixed: fixed})
	}
	c := s.settings
	add(true, "APPMESH_RESOURCE_ARN", s.resource())
	add(true, "APPMESH_VIRTUAL_NODE_NAME", s.resource())
	add(true, "APPMESH_XDS_ENDPOINT", c.XDSEndpoint)
	add(true, envTokenFile, tokenPath+"/token")
	if s.ca != "" {
		add(true, "TULLE_XDS_CA", s.ca)
	}
	add(true, "AWS_REGION", c.Region)
	add(true, "ENVOY_ADMIN_ACCESS_PORT", strconv.Itoa(int(c.AdminPort)))
	add(true, "APPMESH_PLATFORM_K8S_VERSION", s.serverVersion)
	add(true, "APPMESH_PLATFORM_APP_MESH_CONTROLLER_VERSION", version.String())
	list = append(list, variable{fixed: true, EnvVar: field("APPMESH_PLATFORM_K8S_POD_UID", "metadata.uid")})
	add(false, "ENVOY_ADMIN_ACCESS_ENABLE_IPV6", strconv.FormatBool(c.AdminIPv6))
	add(false, "APPMESH_DUALSTACK_ENDPOINT", digit(c.DualStack))
	add(false, "APPMESH_FIPS_ENDPOINT", digit(c.FIPS))
	preview := strings.ToLower(s.annotated(annotationPreview, map[bool]string{true: "enabled"}[c.Preview]))
	add(false, "APPMESH_PREVIEW", digit(preview == "enabled" || preview == "true"))
	add(false, "ENVOY_LOG_LEVEL", strings.ToLower(c.LogLevel))
	if c.AdminAccessLog != "" {
		add(false, "ENVOY_ADMIN_ACCESS_LOG_FILE", c.AdminAccessLog)
	}
	add(false, "APPNET_AGENT_ADMIN_MODE", "uds")
	add(false, "APPNET_AGENT_ADMIN_UDS_PATH", "/tmp/agent.sock")
	wait, err := s.drain()
	if err != nil {
		return nil, err
	}
	add(false, "LISTENER_DRAIN_WAIT_TIME_S", strconv.FormatInt(wait, 10))
	if s.wantsSDS() {
		add(true, "APPMESH_SDS_SOCKET_PATH", c.SDSPath)
	}
	list = append(list, s.observers()...)
	sortVariables(list)
	return list, nil
}

// observers are the variables that say where traces and statistics go.
func (s *subject) observers() []variable {
	var list []variable
	add := func(env corev1.EnvVar) { list = append(list, variable{EnvVar: env}) }
	c := s.settings
	if c.XRay.Enabled {
		rate, _ := samplingRate(c.XRay.SamplingRate) // checked with the settings
		add(corev1.EnvVar{Name: "ENABLE_ENVOY_XRAY_TRACING", Value: "1"})
		add(corev1.EnvVar{Name: "XRAY_DAEMON_PORT", Value: strconv.Itoa(int(c.XRay.Port))})
		add(corev1.EnvVar{Name: "XRAY_SAMPLING_RATE", Value: rate})
	}
	for name, tracer := range map[string]Tracer{"DATADOG": c.Datadog, "JAEGER": c.Jaeger} {
		if tracer.Enabled {
			add(corev1.EnvVar{Name: "ENABLE_ENVOY_" + name + "_TRACING", Value: "1"})
			add(corev1.EnvVar{Name: name + "_TRACER_PORT", Value: strconv.Itoa(int(tracer.Port))})
			add(address(name+"_TRACER_ADDRESS", tracer.Address))
		}
	}
	if c.StatsTags {
		add(corev1.EnvVar{Name: "ENABLE_ENVOY_STATS_TAGS", Value: "1"})
	}
	if c.Statsd.Enabled {
		add(corev1.EnvVar{Name: "ENABLE_ENVOY_DOG_STATSD", Value: "1"})
		add(corev1.EnvVar{Name: "STATSD_PORT", Value: strconv.Itoa(int(c.Statsd.Port))})
		add(address("STATSD_ADDRESS", c.Statsd.Address))
		if path := strings.TrimSpace(c.Statsd.SocketPath); path != "" {
			add(corev1.EnvVar{Name: "STATSD_SOCKET_PATH", Value: path})
		}
	}
	return list
}

// address is a variable that holds a host, which may be told by the pod's own fields.
func address(name, host string) corev1.EnvVar {
	if path, ok := strings.CutPrefix(host, "ref:"); ok {
		return field(name, path)
	}
	return corev1.EnvVar{Name: name, Value: host}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func sortVariables(list []variable) {
	slices.SortFunc(list, func(a, b variable) int { return strings.Compare(a.Name, b.Name) })
}

// environment is the proxy's: what the mesh tells it, with what the pod's annotations say.
func (s *subject) environment() ([]corev1.EnvVar, error) {
	list, err := s.variables()
	if err != nil {
		return nil, err
	}
	own, err := s.ownVariables()
	if err != nil {
		return nil, err
	}
	if rate, ok := own["XRAY_SAMPLING_RATE"]; ok {
		if own["XRAY_SAMPLING_RATE"], err = samplingRate(rate); err != nil {
			return nil, s.wrong(annotationEnv, "XRAY_SAMPLING_RATE: %v", err)
		}
	}
	for i := range list {
		value, ok := own[list[i].Name]
		switch {
		case ok && list[i].fixed:
			s.warn("the variable %s of annotation %s has no effect: the mesh sets it", list[i].Name, annotationEnv)
		case ok:
			list[i].EnvVar = corev1.EnvVar{Name: list[i].Name, Value: value}
		}
		delete(own, list[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		list = append(list, variable{EnvVar: corev1.EnvVar{Name: name, Value: own[name]}})
	}
	sortVariables(list)
	out := make([]corev1.EnvVar, 0, len(list))
	for _, v := range list {
		out = append(out, v.EnvVar)
	}
	return out, nil
}
