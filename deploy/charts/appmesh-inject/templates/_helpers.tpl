{{- define "appmesh-inject.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "appmesh-inject.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the Deployment, the Service and the budget select. The same as the original's, whose Deployment is upgraded in place. */}}
{{- define "appmesh-inject.selector" -}}
app.kubernetes.io/name: {{ include "appmesh-inject.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "appmesh-inject.labels" -}}
{{ include "appmesh-inject.selector" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of what the injector looks for by its name, whatever nameOverride says. */}}
{{- define "appmesh-inject.fixedLabels" -}}
app.kubernetes.io/name: appmesh-inject
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "appmesh-inject.serviceAccountName" -}}
{{- $account := .Values.serviceAccount | default dict -}}
{{- if ne (toString $account.create) "false" -}}
{{- default (include "appmesh-inject.fullname" .) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end -}}

{{/*
An image: (list context values default). AWS's own images cannot take these parts: where values that were written for the original name them, ours are used, and
the notes say so.
*/}}
{{- define "appmesh-inject.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 | default dict -}}
{{- $default := index . 2 -}}
{{- if or (not $image.repository) (include "appmesh-inject.foreignImage" $image.repository) -}}
{{- printf "%s:%s" $default $root.Chart.AppVersion -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag | toString) -}}
{{- end -}}
{{- end -}}

{{- define "appmesh-inject.foreignImage" -}}
{{- if regexMatch "(^|/)(aws-app-mesh-inject|aws-appmesh-envoy|aws-appmesh-proxy-route-manager)$" . -}}true{{- end -}}
{{- end -}}

{{- define "appmesh-inject.injectorImage" -}}
{{- include "appmesh-inject.image" (list . .Values.image "ghcr.io/tulle-mesh/tulle") -}}
{{- end -}}

{{- define "appmesh-inject.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "appmesh-inject.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
