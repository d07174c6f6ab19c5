{{- define "jms-bridge.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "jms-bridge.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := include "jms-bridge.name" . }}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "jms-bridge.selectorLabels" -}}
app.kubernetes.io/name: {{ include "jms-bridge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "jms-bridge.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "jms-bridge.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "jms-bridge.serviceAccountName" -}}
{{- default (ternary (include "jms-bridge.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name }}
{{- end }}

{{- define "jms-bridge.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{/* Value of the label by which Prometheus tells this release from others: docs/operations.md, health and metrics. */}}
{{- define "jms-bridge.bridge" -}}
{{ .Release.Namespace }}/{{ include "jms-bridge.fullname" . }}
{{- end }}

{{/* Kinds of pods, each with the value of its key in values.yaml. */}}
{{- define "jms-bridge.components" -}}
router
{{- range list "sources" "sinks" "topologies" }}
{{- if (index $.Values .).enabled }} {{ . }}{{ end }}
{{- end }}
{{- end }}
