{{- define "appmesh-controller.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "appmesh-controller.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What the Services and the budget select. */}}
{{- define "appmesh-controller.selector" -}}
app.kubernetes.io/name: {{ include "appmesh-controller.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/*
What the Deployment selects, which can never be changed: that of the Deployment which is upgraded, as the original's of either generation, and for a new one that of
the original's last chart.
*/}}
{{- define "appmesh-controller.deploymentSelector" -}}
{{- $name := include "appmesh-controller.fullname" . -}}
{{- $have := lookup "apps/v1" "Deployment" .Release.Namespace $name | default dict -}}
{{- (($have.spec).selector).matchLabels | default (merge (dict "control-plane" $name) (.Values.podLabels | default dict)) | toYaml -}}
{{- end -}}

{{- define "appmesh-controller.labels" -}}
{{ include "appmesh-controller.selector" . }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels of what the controller looks for by its name, whatever nameOverride says. */}}
{{- define "appmesh-controller.fixedLabels" -}}
app.kubernetes.io/name: appmesh-controller
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "appmesh-controller.serviceAccountName" -}}
{{- $account := .Values.serviceAccount | default dict -}}
{{- if ne (toString $account.create) "false" -}}
{{- default (include "appmesh-controller.fullname" .) $account.name -}}
{{- else -}}
{{- default "default" $account.name -}}
{{- end -}}
{{- end -}}

{{/*
Whether the ServiceAccount is made: "true" or nothing. With create=false it is made where the cluster has none of that name, and kept where this release made it.
Without a cluster to ask (helm template) create=false is taken at its word.
*/}}
{{- define "appmesh-controller.makesServiceAccount" -}}
{{- $name := include "appmesh-controller.serviceAccountName" . -}}
{{- if ne (toString (.Values.serviceAccount).create) "false" -}}
true
{{- else if and (ne $name "default") (lookup "v1" "Namespace" "" "kube-system") -}}
{{- $have := lookup "v1" "ServiceAccount" .Release.Namespace $name -}}
{{- $by := ((($have | default dict).metadata).annotations) | default dict -}}
{{- if or (not $have) (eq (get $by "meta.helm.sh/release-name" | default "") .Release.Name) -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
An image: (list context values default). AWS's own images cannot take these parts: where values that were written for the original name them, ours are used, and
the notes say so.
*/}}
{{- define "appmesh-controller.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 | default dict -}}
{{- $default := index . 2 -}}
{{- if or (not $image.repository) (include "appmesh-controller.foreignImage" $image.repository) -}}
{{- printf "%s:%s" $default $root.Chart.AppVersion -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag | toString) -}}
{{- end -}}
{{- end -}}

{{- define "appmesh-controller.foreignImage" -}}
{{- if regexMatch "(^|/)(app-?mesh-controller|aws-appmesh-envoy|aws-appmesh-proxy-route-manager)$" . -}}true{{- end -}}
{{- end -}}

{{- define "appmesh-controller.controllerImage" -}}
{{- include "appmesh-controller.image" (list . .Values.image "ghcr.io/tulle-mesh/tulle") -}}
{{- end -}}

{{/* Digits of a number or a string: Helm reads long numbers as floating point. */}}
{{- define "appmesh-controller.accountId" -}}
{{- if kindIs "float64" . -}}{{ printf "%012.0f" . }}{{- else if kindIs "int64" . -}}{{ printf "%012d" . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{- define "appmesh-controller.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "appmesh-controller.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
