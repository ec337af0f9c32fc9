{{/* The arguments of the controller, by the original's names where it has them. */}}
{{- define "appmesh-controller.args" -}}
{{- $v := .Values -}}
- controller
- --enable-leader-election
- --deployment={{ include "appmesh-controller.fullname" . }}
- --log-level={{ (($v.log).level) | default "info" }}
- --metrics-addr=:8080
- --health-probe-port={{ (((($v.livenessProbe).httpGet).port)) | default 61779 }}
- --webhook-addr=:9443
- --xds-addr=:15010
{{- with $v.clusterDomain }}
- --cluster-domain={{ . }}
{{- end }}
{{- with $v.clusterName }}
- --cluster-name={{ . }}
{{- end }}
{{- with $v.region }}
- --aws-region={{ . }}
{{- end }}
{{- with $v.accountId }}
- --aws-account-id={{ include "appmesh-controller.accountId" . }}
{{- end }}
{{- with $v.defaultMesh }}
- --default-mesh={{ . }}
{{- end }}
{{- if eq (toString $v.placeholderServices) "true" }}
- --placeholder-services
{{- end }}
{{ include "appmesh-controller.injectorArgs" . }}
{{- if ($v.cni).default }}
- --enable-cni
{{- end }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Flags of the injector: (list FLAG VALUE DEFAULT). A value that is not there takes the default; 0 is there. */}}
{{- define "appmesh-controller.flags" -}}
{{- range . }}
{{- $value := kindIs "invalid" (index . 1) | ternary (index . 2) (index . 1) }}
{{- if ne (toString $value) "" }}
- --{{ index . 0 }}={{ $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "appmesh-controller.injectorArgs" -}}
{{- $v := .Values -}}
{{- $s := $v.sidecar | default dict -}}
{{- $agent := "ghcr.io/tulle-mesh/tulle-agent" -}}
{{- $image := include "appmesh-controller.image" (list . $s.image $agent) -}}
- --sidecar-image-repository={{ regexReplaceAll ":[^:/]*$" $image "" }}
- --sidecar-image-tag={{ regexFind "[^:/]*$" $image }}
- --init-image={{ include "appmesh-controller.image" (list . ($v.init).image $agent) }}
{{- include "appmesh-controller.flags" (list
  (list "sidecar-mode" $s.mode "auto")
  (list "sidecar-log-level" $s.logLevel "info")
  (list "sidecar-cpu-requests" (($s.resources).requests).cpu "10m")
  (list "sidecar-memory-requests" (($s.resources).requests).memory "32Mi")
  (list "sidecar-cpu-limits" (($s.resources).limits).cpu "")
  (list "sidecar-memory-limits" (($s.resources).limits).memory "")
  (list "envoy-admin-access-port" $s.envoyAdminAccessPort 9901)
  (list "envoy-admin-access-log-file" $s.envoyAdminAccessLogFile "/tmp/envoy_admin_access.log")
  (list "envoy-admin-access-enable-ipv6" $s.envoyAdminAccessEnableIPv6 false)
  (list "prestop-delay" ($s.lifecycleHooks).preStopDelay 20)
  (list "poststart-timeout" ($s.lifecycleHooks).postStartTimeout 180)
  (list "readiness-probe-initial-delay" ($s.probes).readinessProbeInitialDelay 1)
  (list "readiness-probe-period" ($s.probes).readinessProbePeriod 10)
  (list "wait-until-proxy-ready" $s.waitUntilProxyReady false)
  (list "enable-sds" ($v.sds).enabled false)
  (list "sds-uds-path" ($v.sds).udsPath "/run/spire/sockets/agent.sock")) }}
{{- include "appmesh-controller.tracingArgs" $v }}
{{- include "appmesh-controller.statsArgs" $v }}
{{- end -}}

{{- define "appmesh-controller.tracingArgs" -}}
{{- $t := .tracing | default dict -}}
{{- if $t.enabled }}
{{- $own := eq (toString ($t.port | default 2000)) "2000" }}
{{- if eq $t.provider "x-ray" }}
{{- $daemon := (.xray).image | default dict }}
- --enable-xray-tracing=true
- --xray-image={{ $daemon.repository | default "public.ecr.aws/xray/aws-xray-daemon" }}:{{ $daemon.tag | default "latest" }}
{{- include "appmesh-controller.flags" (list
  (list "xray-daemon-port" $t.port 2000)
  (list "xray-sampling-rate" $t.samplingRate 0.05)
  (list "xray-log-level" $t.logLevel "prod")
  (list "xray-config-roleArn" $t.role "")) }}
{{- else if eq $t.provider "jaeger" }}
- --enable-jaeger-tracing=true
- --jaeger-address={{ $t.address }}
- --jaeger-port={{ $own | ternary 9411 $t.port }}
{{- else if eq $t.provider "datadog" }}
- --enable-datadog-tracing=true
- --datadog-address={{ $t.address }}
- --datadog-port={{ $own | ternary 8126 $t.port }}
{{- else }}
{{- fail (printf "tracing.provider is %q: want x-ray, jaeger or datadog" (toString $t.provider)) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "appmesh-controller.statsArgs" -}}
{{- $s := .stats | default dict -}}
{{- if $s.tagsEnabled }}
- --enable-stats-tags=true
{{- end }}
{{- if $s.statsdEnabled }}
- --enable-statsd=true
- --statsd-address={{ $s.statsdAddress | default "127.0.0.1" }}
- --statsd-port={{ $s.statsdPort | default 8125 }}
{{- with $s.statsdSocketPath }}
- --statsd-socket-path={{ . }}
{{- end }}
{{- end }}
{{- end -}}
