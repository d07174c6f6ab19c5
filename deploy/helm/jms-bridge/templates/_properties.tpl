{{/* Lines of the properties file that the chart sets; they follow those of the user, whose line numbers stay. */}}
{{- define "jms-bridge.ownProperties" -}}
embedded=off
embedded.data=/var/lib/jms-bridge
router.checkpoint={{ default "/var/lib/jms-bridge/checkpoint" .Values.router.checkpoint }}
http.metrics-address=0.0.0.0:8481
http.insecure=true
{{- if .Values.reload }}
reload.watch=true
{{- end }}
{{- if .Values.topologies.state }}
topologies.state={{ .Values.topologies.state }}
{{- end }}
{{- with .Values.executors }}
{{- if .enabled }}
spark.master=k8s://https://kubernetes.default.svc
spark.kubernetes.namespace={{ $.Release.Namespace }}
spark.kubernetes.driver.pod.name=${env:POD_NAME}
spark.kubernetes.executor.podTemplateFile=/etc/jms-bridge-executor/executor.yaml
spark.kubernetes.container.image={{ .image }}
spark.executor.instances={{ .instances }}
spark.executor.cores={{ .cores }}
spark.kubernetes.executor.request.cores={{ .requestCores }}
spark.executor.memory={{ .memory }}
spark.driver.host=${env:POD_IP}
spark.driver.bindAddress=0.0.0.0
spark.driver.port=7078
spark.driver.blockManager.port=7079
{{- end }}
{{- end }}
{{- end }}

{{/* The whole properties file; fails where values contradict one another. */}}
{{- define "jms-bridge.properties" -}}
{{- $config := required "config is empty: give the properties file with --set-file config=jms-bridge.properties" .Values.config }}
{{- $own := include "jms-bridge.ownProperties" . }}
{{- range splitList "\n" $own }}
{{- $key := regexFind "^[^=]+" . }}
{{- if regexMatch (printf `(?m)^[ \t]*%s[ \t]*[=:]` (replace "." `\.` $key)) $config }}
{{- fail (printf "config sets %s, which the chart sets: remove that line, and see the chart's README for the value in its place" $key) }}
{{- end }}
{{- end }}
{{- with regexFind `(?m)^[ \t]*[\w.-]*(password|token|secret)[ \t]*[=:][ \t]*[^\s$]` $config }}
{{- fail (printf "config has a secret in plain text in %s, and a ConfigMap is no place for it: write ${env:NAME} or ${file:/etc/jms-bridge-secrets/KEY}" (regexFind `[\w.-]+` .)) }}
{{- end }}
{{- range $component, $pattern := dict "sources" `source\.` "sinks" `sink\.` "topologies" `topologies\.[\w.-]+\.build` }}
{{- if and (index $.Values $component).enabled (not (regexMatch (printf `(?m)^[ \t]*%s` $pattern) $config)) }}
{{- fail (printf "config has no %s, and a pod for them would end at once: add some, or set %s.enabled to false" $component $component) }}
{{- end }}
{{- end }}
{{- if and (gt (int .Values.router.replicas) 1) (not .Values.router.checkpoint) (not (regexMatch `(?m)^[ \t]*bridge\.secret[ \t]*[=:]` $config)) }}
{{- fail "config lacks bridge.secret, and a standby with a checkpoint of its own needs it: add bridge.secret=${env:BRIDGE_SECRET}, or set router.replicas to 1" }}
{{- end }}
{{- if and .Values.executors.enabled .Values.topologies.enabled (not .Values.topologies.state) }}
{{- fail "topologies.state is empty, and executors reach no volume of the topologies' pod: set it to a URI, or executors.enabled to false" }}
{{- end }}
{{- trimSuffix "\n" $config }}

# What the chart sets.
{{ $own }}
{{ end }}
