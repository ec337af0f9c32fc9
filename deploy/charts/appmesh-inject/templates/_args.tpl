{{/* The arguments of the injector. */}}
{{- define "appmesh-inject.args" -}}
{{- $v := .Values -}}
- inject
- --deployment={{ include "appmesh-inject.fullname" . }}
- --log-level={{ ($v.log).level | default "info" }}
- --mesh-name={{ ($v.mesh).name | default "global" }}
- --webhook-addr=:9443
- --metrics-addr=:8080
- --health-probe-port=61779
{{- with $v.clusterDomain }}
- --cluster-domain={{ . }}
{{- end }}
{{ include "appmesh-inject.injectorArgs" . }}
{{- range $v.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Flags of the injector: (list FLAG VALUE DEFAULT). A value that is not there takes the default; 0 is there. */}}
{{- define "appmesh-inject.flags" -}}
{{- range . }}
{{- $value := kindIs "invalid" (index . 1) | ternary (index . 2) (index . 1) }}
{{- if ne (toString $value) "" }}
- --{{ index . 0 }}={{ $value }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "appmesh-inject.injectorArgs" -}}
{{- $v := .Values -}}
{{- $s := $v.sidecar | default dict -}}
{{- $agent := "ghcr.io/tulle-mesh/tulle-agent" -}}
{{- $image := include "appmesh-inject.image" (list . $s.image $agent) -}}
- --sidecar-image-repository={{ regexReplaceAll ":[^:/]*$" $image "" }}
- --sidecar-image-tag={{ regexFind "[^:/]*$" $image }}
- --init-image={{ include "appmesh-inject.image" (list . ($v.init).image $agent) }}
{{- include "appmesh-inject.flags" (list
  (list "sidecar-mode" $s.mode "auto")
  (list "sidecar-log-level" $s.logLevel "info")
  (list "sidecar-cpu-requests" (($s.resources).requests).cpu "10m")
  (list "sidecar-memory-requests" (($s.resources).requests).memory "32Mi")) }}
{{- include "appmesh-inject.tracingArgs" $v }}
{{- include "appmesh-inject.statsArgs" $v }}
{{- end -}}

{{- define "appmesh-inject.tracingArgs" -}}
{{- $t := .tracing | default dict -}}
{{- if $t.enabled }}
{{- if eq $t.provider "x-ray" }}
- --enable-xray-tracing=true
{{- else if eq $t.provider "jaeger" }}
- --enable-jaeger-tracing=true
- --jaeger-address={{ $t.address }}
- --jaeger-port={{ $t.port }}
{{- else if eq $t.provider "datadog" }}
- --enable-datadog-tracing=true
- --datadog-address={{ $t.address }}
- --datadog-port={{ $t.port }}
{{- else }}
{{- fail (printf "tracing.provider is %q: want x-ray, jaeger or datadog" (toString $t.provider)) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "appmesh-inject.statsArgs" -}}
{{- if (.stats).tagsEnabled }}
- --enable-stats-tags=true
{{- end }}
{{- if (.stats).statsdEnabled }}
- --enable-statsd=true
{{- end }}
{{- end -}}
