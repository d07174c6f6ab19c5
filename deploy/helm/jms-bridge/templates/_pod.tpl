{{/* Pod of a component: (dict "root" $ "component" "router"). */}}
{{- define "jms-bridge.pod" -}}
{{- $values := index .root.Values .component }}
{{- $driver := and .root.Values.executors.enabled (has .component (list "router" "topologies")) }}
{{- $component := .component }}
{{- with .root }}
metadata:
  labels:
    {{- include "jms-bridge.labels" . | nindent 4 }}
    app.kubernetes.io/component: {{ $component }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- if not .Values.reload }}
    checksum/config: {{ include "jms-bridge.properties" . | sha256sum }}
    {{- end }}
    {{- if eq $component "topologies" }}
    checksum/modules: {{ toYaml .Values.topologies.modules | sha256sum }}
    {{- end }}
    {{- if not .Values.serviceMonitor.enabled }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "8481"
    prometheus.io/path: /metrics
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  serviceAccountName: {{ include "jms-bridge.serviceAccountName" . }}
  # Only a driver of Spark asks the API server for anything: for its executors.
  automountServiceAccountToken: {{ $driver }}
  enableServiceLinks: false
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {{ .Values.topologySpread.topologyKey }}
      whenUnsatisfiable: {{ .Values.topologySpread.whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- include "jms-bridge.selectorLabels" . | nindent 10 }}
          app.kubernetes.io/component: {{ $component }}
  containers:
    - name: jms-bridge
      image: {{ include "jms-bridge.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, -c, /etc/jms-bridge/jms-bridge.properties, --only, {{ $component }}]
      {{- with .Values.existingSecret }}
      envFrom:
        - secretRef: {name: {{ . }}}
      {{- end }}
      {{- if or .Values.executors.enabled (eq $component "topologies") .Values.extraEnv }}
      env:
        {{- if .Values.executors.enabled }}
        # For the driver's address; all pods read the file that asks for it.
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        {{- end }}
        {{- if eq $component "topologies" }}
        # Where Python looks for the modules that topologies.NAME.build names.
        - {name: PYTHONPATH, value: /opt/topologies}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      ports:
        - {name: metrics, containerPort: 8481}
        {{- if $driver }}
        - {name: driver, containerPort: 7078}
        - {name: blocks, containerPort: 7079}
        {{- end }}
        {{- range $values.listeners }}
        - {name: {{ .name }}, containerPort: {{ .port }}}
        {{- end }}
      # Spark and the brokers' clients take their time; then the supervisor answers at once, whatever its parts do.
      startupProbe:
        httpGet: {path: /health, port: metrics}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /health, port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: {{ eq $component "router" | ternary "/ready?standby=ok" "/ready" | quote }}, port: metrics}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/jms-bridge, readOnly: true}
        - {name: state, mountPath: /var/lib/jms-bridge}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.existingFilesSecret }}
        - {name: secrets, mountPath: /etc/jms-bridge-secrets, readOnly: true}
        {{- end }}
        {{- if $driver }}
        - {name: executor, mountPath: /etc/jms-bridge-executor, readOnly: true}
        {{- end }}
        {{- if eq $component "topologies" }}
        - {name: modules, mountPath: /opt/topologies, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap: {name: {{ include "jms-bridge.fullname" . }}}
    - name: tmp
      emptyDir: {}
    {{- if ne (include "jms-bridge.keepsState" (dict "root" . "component" $component)) "true" }}
    # Logs, locks and temporary files; nothing that would be missed.
    - name: state
      emptyDir: {}
    {{- end }}
    {{- with .Values.existingFilesSecret }}
    - name: secrets
      secret: {secretName: {{ . }}, defaultMode: 0440}
    {{- end }}
    {{- if $driver }}
    - name: executor
      configMap: {name: {{ include "jms-bridge.fullname" . }}-executor}
    {{- end }}
    {{- if eq $component "topologies" }}
    - name: modules
      configMap: {name: {{ include "jms-bridge.fullname" . }}-topologies}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}

{{/* `true` if the pods of a component need a volume of their own that outlives them. */}}
{{- define "jms-bridge.keepsState" -}}
{{- if eq .component "router" }}{{ empty .root.Values.router.checkpoint }}
{{- else if eq .component "topologies" }}{{ empty .root.Values.topologies.state }}
{{- else }}false
{{- end }}
{{- end }}
