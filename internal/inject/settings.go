// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
	"github.com/tulle-mesh/tulle/internal/version"
)

// The ways to run the proxy beside the application.
const (
	// SidecarNative runs it as an init container that goes on: it is ready before the application starts, and a Job ends.
	SidecarNative = "native"
	// SidecarClassic runs it as one of the pod's containers.
	SidecarClassic = "classic"
	// SidecarAuto is native where the API server knows of such containers, else classic.
	SidecarAuto = "auto"
)

// Settings are the choices of the mesh's operator.
type Settings struct {
	// Image is the proxy's; InitImage that of the container that redirects traffic, Image when empty. Both must start tulle-agent.
	Image, InitImage string
	// SidecarMode is SidecarNative, SidecarClassic or SidecarAuto; a pod's annotation wins.
	SidecarMode string
	// CNI leaves the redirection to the CNI plugin; a pod's annotation wins.
	CNI bool
	// XDSEndpoint is the control plane's address, host:port.
	XDSEndpoint string
	// Region and AccountID are those in ARNs.
	Region, AccountID string

	// LogLevel is Envoy's.
	LogLevel string
	// AdminPort is where Envoy's administration listens on loopback, and statistics and readiness on the pod's address.
	AdminPort      uint16
	AdminAccessLog string
	AdminIPv6      bool

	// Quantities; empty for none.
	CPURequest, MemoryRequest, CPULimit, MemoryLimit string

	// IgnoredIPs are addresses and networks, separated by commas, to which connections are not captured.
	IgnoredIPs string
	// Preview, DualStack and FIPS are told to the proxy. Only App Mesh's own image asked AWS in another way for them.
	Preview, DualStack, FIPS bool

	// DrainWait is how long a proxy that is to end waits, at most, for what is in flight: seconds, or a duration such as 1m.
	DrainWait string
	// WaitUntilReady starts the containers of a pod with a classic sidecar once the proxy is ready.
	WaitUntilReady bool
	// ReadyTimeout is how many seconds a proxy may take to become ready before it is started again.
	ReadyTimeout int32
	// ReadinessDelay and ReadinessPeriod are those of the readiness probe, in seconds.
	ReadinessDelay, ReadinessPeriod int32

	// SDS mounts the socket at SDSPath for nodes whose certificates come from it.
	SDS     bool
	SDSPath string

	StatsTags bool
	Statsd    Statsd
	XRay      XRay
	Datadog   Tracer
	Jaeger    Tracer

	// PullSecret adds the image pull secret appmesh-ecr-secret.
	PullSecret bool
	// FSGroup lets the proxy's user read projected credentials.
	FSGroup bool
}

// Statsd is where statistics are sent to.
type Statsd struct {
	Enabled bool
	// Address is a host, or ref:status.hostIP for the pod's node.
	Address string
	Port    uint16
	// SocketPath wins over the address.
	SocketPath string
}

// Tracer is where traces are sent to.
type Tracer struct {
	Enabled bool
	// Address is a host, or ref:status.hostIP for the pod's node.
	Address string
	Port    uint16
}

// XRay is the daemon of AWS X-Ray beside the proxy.
type XRay struct {
	Enabled  bool
	Image    string
	Port     uint16
	LogLevel string
	RoleARN  string
	// SamplingRate is from 0 to 1.
	SamplingRate string
}

// Repository is that of the proxy's image.
const Repository = "ghcr.io/tulle-mesh/tulle-agent"

// Tag is the tag of the proxy's image that belongs to this build: its version, less what follows the release's number, and latest where it is of no release.
func Tag() string {
	tag, _, _ := strings.Cut(version.String(), "-")
	if !strings.HasPrefix(tag, "v") {
		return "latest"
	}
	return tag
}

// Defaults are the settings where nothing else is said, but for the address of the control plane.
func Defaults() Settings {
	return Settings{
		Image: Repository + ":" + Tag(), SidecarMode: SidecarAuto,
		LogLevel: "info", AdminPort: 9901, AdminAccessLog: "/tmp/envoy_admin_access.log",
		CPURequest: "10m", MemoryRequest: "32Mi", IgnoredIPs: "169.254.169.254",
		DrainWait: "20", ReadyTimeout: 180, ReadinessDelay: 1, ReadinessPeriod: 10,
		SDSPath: "/run/spire/sockets/agent.sock", FSGroup: true,
		Statsd:  Statsd{Address: "127.0.0.1", Port: 8125},
		XRay:    XRay{Image: "public.ecr.aws/xray/aws-xray-daemon", Port: 2000, LogLevel: "prod", SamplingRate: "0.05"},
		Datadog: Tracer{Address: "datadog.appmesh-system", Port: 8126},
		Jaeger:  Tracer{Address: "appmesh-jaeger.appmesh-system", Port: 9411},
	}
}

// logLevels are those of Envoy.
func logLevels() []string {
	return []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "off"}
}

var roleARN = regexp.MustCompile(`^arn:(aws|aws-us-gov|aws-cn|aws-iso[a-z-]*):iam::\d{12}:role/[\w+=,.@/-]+$`)

// faults gathers what is wrong, each with the flag that sets it.
type faults struct{ list []error }

func (f *faults) add(flag, format string, args ...any) {
	f.list = append(f.list, fmt.Errorf("--%s: %s", flag, fmt.Sprintf(format, args...)))
}

// Validate gathers all faults, each with the flag that sets it.
func (s *Settings) Validate() error {
	f := &faults{}
	s.checkProxy(f)
	s.checkTimes(f)
	s.checkResources(f)
	s.checkTracers(f)
	s.checkXRay(f)
	slices.SortFunc(f.list, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(f.list...)
}

func (s *Settings) checkProxy(f *faults) {
	if strings.HasPrefix(s.Image, ":") || strings.HasSuffix(s.Image, ":") || s.Image == "" {
		f.add("sidecar-image-repository", "%q is no image: give a repository, and a tag with --sidecar-image-tag", s.Image)
	}
	if !slices.Contains([]string{SidecarNative, SidecarClassic, SidecarAuto}, s.SidecarMode) {
		f.add("sidecar-mode", "%q: want native, classic or auto", s.SidecarMode)
	}
	if !slices.Contains(logLevels(), strings.ToLower(s.LogLevel)) {
		f.add("sidecar-log-level", "%q: want one of %s", s.LogLevel, strings.Join(logLevels(), ", "))
	}
	if s.AdminPort == 0 {
		f.add("envoy-admin-access-port", "want 1 to 65535: the probes ask there")
	}
	if _, _, err := net.SplitHostPort(s.XDSEndpoint); err != nil && !strings.HasPrefix(s.XDSEndpoint, "unix:///") {
		f.add("xds-endpoint", "%q: want host:port", s.XDSEndpoint)
	}
	if _, err := redirect.ParseIPs(s.IgnoredIPs); err != nil {
		f.add("ignored-ips", "%v", err)
	}
	if s.SDS && !path.IsAbs(s.SDSPath) {
		f.add("sds-uds-path", "%q: want an absolute path", s.SDSPath)
	}
}

func (s *Settings) checkTimes(f *faults) {
	if _, err := s.drainWait(); err != nil {
		f.add("prestop-delay", "%v", err)
	}
	for flag, n := range map[string]int32{"poststart-timeout": s.ReadyTimeout, "readiness-probe-period": s.ReadinessPeriod} {
		if n < 1 {
			f.add(flag, "%d: want 1 second or more", n)
		}
	}
	if s.ReadinessDelay < 0 {
		f.add("readiness-probe-initial-delay", "%d: want 0 seconds or more", s.ReadinessDelay)
	}
}

func (s *Settings) checkResources(f *faults) {
	for _, r := range []struct{ name, request, limit string }{{"cpu", s.CPURequest, s.CPULimit}, {"memory", s.MemoryRequest, s.MemoryLimit}} {
		requestErr, limitErr := checkQuantity(r.request), checkQuantity(r.limit)
		if requestErr != nil {
			f.add("sidecar-"+r.name+"-requests", "%v", requestErr)
		}
		if limitErr != nil {
			f.add("sidecar-"+r.name+"-limits", "%v", limitErr)
		}
		if requestErr != nil || limitErr != nil || r.request == "" || r.limit == "" {
			continue
		}
		if request, limit := resource.MustParse(r.request), resource.MustParse(r.limit); request.Cmp(limit) > 0 {
			f.add("sidecar-"+r.name+"-limits", "%s is below what is requested, %s", r.limit, r.request)
		}
	}
}

func (s *Settings) checkTracers(f *faults) {
	var tracers []string
	for _, tracer := range []struct {
		flag string
		on   bool
	}{{"--enable-datadog-tracing", s.Datadog.Enabled}, {"--enable-jaeger-tracing", s.Jaeger.Enabled}, {"--enable-xray-tracing", s.XRay.Enabled}} {
		if tracer.on {
			tracers = append(tracers, tracer.flag)
		}
	}
	if len(tracers) > 1 {
		f.list = append(f.list, fmt.Errorf("%s: Envoy has one tracer: turn on one of them", strings.Join(tracers, ", ")))
	}
	statsd := Tracer{Enabled: s.Statsd.Enabled && s.Statsd.SocketPath == "", Address: s.Statsd.Address, Port: s.Statsd.Port}
	for name, to := range map[string]Tracer{"datadog": s.Datadog, "jaeger": s.Jaeger, "statsd": statsd} {
		if to.Enabled && to.Address == "" {
			f.add(name+"-address", "want a host, or ref:status.hostIP")
		}
		if to.Enabled && to.Port == 0 {
			f.add(name+"-port", "want 1 to 65535")
		}
	}
}

func (s *Settings) checkXRay(f *faults) {
	if !s.XRay.Enabled {
		return
	}
	if s.XRay.Image == "" {
		f.add("xray-image", "want an image")
	}
	if s.XRay.Port == 0 {
		f.add("xray-daemon-port", "want 1 to 65535")
	}
	if s.Region == "" {
		f.add("aws-region", "the X-Ray daemon wants a region")
	}
	if _, err := samplingRate(s.XRay.SamplingRate); err != nil {
		f.add("xray-sampling-rate", "%v", err)
	}
	if _, err := xrayLogLevel(s.XRay.LogLevel); err != nil {
		f.add("xray-log-level", "%v", err)
	}
	if s.XRay.RoleARN != "" && !roleARN.MatchString(s.XRay.RoleARN) {
		f.add("xray-config-roleArn", "%q: want arn:aws:iam::ACCOUNT:role/NAME", s.XRay.RoleARN)
	}
}

// maxDrain is what the agent allows.
const maxDrain = time.Hour

// drainWait reads DrainWait, in whole seconds.
func (s *Settings) drainWait() (int64, error) {
	text := strings.TrimSpace(s.DrainWait)
	wait, err := time.ParseDuration(text)
	if n, number := strconv.ParseFloat(text, 64); number == nil {
		wait, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil || wait < 0 || wait > maxDrain {
		return 0, fmt.Errorf("%q: want seconds, or a duration such as 1m, of at most an hour", s.DrainWait)
	}
	return int64(math.Ceil(wait.Seconds())), nil
}

func checkQuantity(text string) error {
	if text == "" {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err == nil && q.Sign() < 0 {
		err = errors.New("it is negative")
	}
	if err != nil {
		return fmt.Errorf("%q is no quantity such as 100m or 64Mi: %w", text, err)
	}
	return nil
}

// samplingRate reads a rate from 0 to 1, with two decimals.
func samplingRate(text string) (string, error) {
	rate, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(rate >= 0 && rate <= 1) {
		return "", fmt.Errorf("%q is no sampling rate: want a number from 0 to 1", text)
	}
	return strconv.FormatFloat(math.Round(rate*100)/100, 'f', -1, 64), nil
}
