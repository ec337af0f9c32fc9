// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"strings"
	"testing"

	"github.com/tulle-mesh/tulle/internal/inject"
)

func TestSettingsAtFaultAreNamedByTheirFlag(t *testing.T) {
	t.Parallel()
	if err := new(testSettings()).Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*inject.Settings){
		"--sidecar-image-repository: ":                   func(s *inject.Settings) { s.Image = ":v1" },
		"--sidecar-mode: \"nativ\"":                      func(s *inject.Settings) { s.SidecarMode = "nativ" },
		"--sidecar-log-level: \"loud\"":                  func(s *inject.Settings) { s.LogLevel = "loud" },
		"--envoy-admin-access-port: ":                    func(s *inject.Settings) { s.AdminPort = 0 },
		"--xds-endpoint: \"x\"":                          func(s *inject.Settings) { s.XDSEndpoint = "x" },
		"--ignored-ips: \"x\"":                           func(s *inject.Settings) { s.IgnoredIPs = "10.0.0.1,x" },
		"--prestop-delay: \"soon\"":                      func(s *inject.Settings) { s.DrainWait = "soon" },
		"--prestop-delay: \"2h\"":                        func(s *inject.Settings) { s.DrainWait = "2h" },
		"--poststart-timeout: 0":                         func(s *inject.Settings) { s.ReadyTimeout = 0 },
		"--readiness-probe-period: 0":                    func(s *inject.Settings) { s.ReadinessPeriod = 0 },
		"--readiness-probe-initial-delay: -1":            func(s *inject.Settings) { s.ReadinessDelay = -1 },
		"--sidecar-cpu-requests: \"lots\"":               func(s *inject.Settings) { s.CPURequest = "lots" },
		"--sidecar-memory-limits: \"-1\"":                func(s *inject.Settings) { s.MemoryLimit = "-1" },
		"--sidecar-cpu-limits: 5m is below":              func(s *inject.Settings) { s.CPULimit = "5m" },
		"--sds-uds-path: \"x\"":                          func(s *inject.Settings) { s.SDS, s.SDSPath = true, "x" },
		"--jaeger-port: want 1 to 65535":                 func(s *inject.Settings) { s.Jaeger.Enabled, s.Jaeger.Port = true, 0 },
		"--datadog-address: want a host":                 func(s *inject.Settings) { s.Datadog.Enabled, s.Datadog.Address = true, "" },
		"--statsd-port: want 1 to 65535":                 func(s *inject.Settings) { s.Statsd.Enabled, s.Statsd.Port = true, 0 },
		"--xray-image: want an image":                    func(s *inject.Settings) { s.XRay.Enabled, s.XRay.Image = true, "" },
		"--xray-sampling-rate: \"2\"":                    func(s *inject.Settings) { s.XRay.Enabled, s.XRay.SamplingRate = true, "2" },
		"--xray-sampling-rate: \"NaN\"":                  func(s *inject.Settings) { s.XRay.Enabled, s.XRay.SamplingRate = true, "NaN" },
		"--xray-log-level: \"x\"":                        func(s *inject.Settings) { s.XRay.Enabled, s.XRay.LogLevel = true, "x" },
		"--xray-config-roleArn: \"x\"":                   func(s *inject.Settings) { s.XRay.Enabled, s.XRay.RoleARN = true, "x" },
		"--aws-region: the X-Ray daemon wants a region":  func(s *inject.Settings) { s.XRay.Enabled, s.Region = true, "" },
		"--enable-jaeger-tracing, --enable-xray-tracing": func(s *inject.Settings) { s.Jaeger.Enabled, s.XRay.Enabled = true, true },
	} {
		s := testSettings()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want one line with %q", err, want)
		}
	}
}

func TestTheDrainWaitIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"20": "20", "1m": "25", "0": "0", "2.5": "3", "7": "7"} {
		settings := testSettings()
		settings.DrainWait = text
		got := newWebhook(t, settings, shop()).create(t, []byte(apiPod))
		if !strings.Contains(string(got.pod), `"LISTENER_DRAIN_WAIT_TIME_S","value":"`+want+`"`) {
			t.Errorf("%q: no wait of %s in %s", text, want, got.pod)
		}
	}
}
