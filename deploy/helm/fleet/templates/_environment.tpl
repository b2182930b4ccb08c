{{/* The environment of every role. Of the root. */}}
{{- define "fleet.environment.common" -}}
- {name: FLEET_KEYS_FILE, value: {{ printf "/etc/fleet/keys/%s" .Values.keys.entry | quote }}}
{{- include "fleet.environment.redis" . }}
- {name: FLEET_SHARDS, value: {{ .Values.shards | quote }}}
- {name: FLEET_LOG_LEVEL, value: {{ .Values.logLevel | quote }}}
- {name: FLEET_LOG_FORMAT, value: json}
{{- with .Values.traces.otlpEndpoint }}
- {name: FLEET_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- if .Values.authorities.existingSecret }}
- {name: FLEET_TLS_CA, value: {{ printf "/etc/fleet/authorities/%s" .Values.authorities.entry | quote }}}
{{- end }}
{{- end -}}

{{- define "fleet.environment.redis" }}
{{- if .Values.redisServer.enabled }}
- name: REDIS_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ .Values.redisServer.existingSecret | default (printf "%s-redis" (include "fleet.fullname" .)) }}
      key: {{ .Values.redisServer.entry }}
- {name: FLEET_REDIS_URL, value: "redis://:$(REDIS_PASSWORD)@{{ include "fleet.fullname" . }}-redis:6379/0"}
{{- else if .Values.redis.existingSecret }}
- name: FLEET_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.existingSecret }}, key: {{ .Values.redis.entry }}}}
{{- else }}
- {name: FLEET_REDIS_URL, value: {{ .Values.redis.url | quote }}}
{{- end }}
{{- end -}}

{{- define "fleet.environment.broker" -}}
- name: FLEET_MQTT_URL
  value: {{ .Values.broker.url | default (printf "mqtt://%s-mosquitto-internal:1883" (include "fleet.fullname" .)) | quote }}
{{- end -}}

{{/* How devices reach us; what is empty is left to the roles' own defaults. */}}
{{- define "fleet.environment.public" -}}
- {name: FLEET_PUBLIC_HOST, value: {{ .Values.publicHost | quote }}}
{{- with include "fleet.httpPublic" . }}
- {name: FLEET_HTTP_PUBLIC, value: {{ . | quote }}}
{{- end }}
{{- with include "fleet.brokerPublic" . }}
- {name: FLEET_MQTT_PUBLIC, value: {{ . | quote }}}
{{- end }}
{{- end -}}

{{/* Where devices are sent; firmware speaks TLS on port 8883 only. */}}
{{- define "fleet.brokerPublic" -}}
{{- if .Values.broker.public -}}
{{ .Values.broker.public }}
{{- else if include "fleet.brokerTls" . -}}
{{ .Values.publicHost }}:8883
{{- end -}}
{{- end -}}

{{/* `yes` where devices come in by TLS only. */}}
{{- define "fleet.brokerTls" -}}
{{- if or (and .Values.mosquitto.enabled .Values.mosquitto.tlsSecret) (and .Values.front.enabled .Values.front.tlsSecret) -}}yes{{- end -}}
{{- end -}}

{{- define "fleet.httpPublic" -}}
{{- if .Values.httpPublic -}}
{{ .Values.httpPublic }}
{{- else if .Values.api.ingress.enabled -}}
{{ ternary "https" "http" (ne .Values.api.ingress.tlsSecret "") }}://{{ .Values.api.ingress.host }}
{{- end -}}
{{- end -}}

{{/* An endpoint and its key. Of (root, endpoint, prefix). */}}
{{- define "fleet.environment.endpoint" }}
{{- $name := upper .endpoint }}
{{- range $key, $value := index .root.Values.models .endpoint }}
{{- if $value }}
- {name: {{ $name }}_{{ ternary "BASE_URL" (upper $key) (eq $key "baseUrl") }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
{{- if or .root.Values.models.existingSecret (index .root.Values.models.apiKeys .endpoint) }}
- name: {{ $name }}_API_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.models.existingSecret | default (printf "%s-models" (include "fleet.fullname" .root)) }}
      key: {{ $name }}_API_KEY
      optional: true
{{- end }}
{{- end -}}

{{/*
All variables of a role, each once: those of the operator for one role win over those for all, and both over the chart's.
Of (root, component, role, environment, drain).
*/}}
{{- define "fleet.environment.whole" -}}
{{- $own := merge (dict) .role.env .root.Values.settings }}
{{- range concat (fromYamlArray (include "fleet.environment.common" .root)) (fromYamlArray .environment) }}
{{- if not (hasKey $own .name) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- $keys := .root.Values.secretKeys }}
{{- if and $keys.existingSecret (has .component (list "worker" "edge" "gateway" "control")) }}
- name: FLEET_SECRET_KEYS
  valueFrom: {secretKeyRef: {name: {{ $keys.existingSecret }}, key: {{ $keys.entry }}}}
{{- end }}
{{- if .drain }}
- {name: FLEET_DRAIN_SECONDS, value: {{ .drain | quote }}}
{{- end }}
{{- range fromYamlArray (include "fleet.files" .) }}
- {name: {{ .setting }}, value: {{ .path | quote }}}
{{- end }}
{{- range $name, $value := $own }}
{{- /* Large numbers would become 1e+06. */}}
- {name: {{ $name }}, value: {{ ternary (toJson $value) (toString $value) (kindIs "float64" $value) | quote }}}
{{- end }}
{{- end -}}

{{- define "fleet.worker.environment" -}}
{{ include "fleet.environment.broker" . }}
{{ include "fleet.environment.public" . }}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "llm") }}
- {name: FLEET_METRICS_PORT, value: {{ .Values.metrics.port | quote }}}
{{- end -}}

{{- define "fleet.gateway.environment" -}}
- {name: CLOUD_HOST, value: 0.0.0.0}
- {name: CLOUD_PORT, value: "9400"}
{{ include "fleet.environment.broker" . }}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "llm") }}
- {name: FLEET_METRICS_PORT, value: {{ .Values.metrics.port | quote }}}
{{- end -}}

{{- define "fleet.api.environment" -}}
{{ include "fleet.environment.public" . }}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "llm") }}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "vision") }}
- {name: FLEET_ACTIVATION, value: {{ .Values.activation | quote }}}
{{- with .Values.api.trustedProxies }}
- {name: FLEET_TRUSTED_PROXIES, value: {{ . | quote }}}
{{- end }}
{{- if .Values.api.firmwareClaim }}
- {name: FLEET_FIRMWARE_DIR, value: /var/lib/fleet-firmware}
{{- end }}
{{- if .Values.broker.existingTokenSecret }}
- {name: FLEET_BROKER_TOKEN, valueFrom: {secretKeyRef: {name: {{ .Values.broker.existingTokenSecret }}, key: token}}}
{{- end }}
{{- with .Values.broker.emqxApiUrl }}
- {name: FLEET_EMQX_API_URL, value: {{ . | quote }}}
- {name: FLEET_EMQX_API_KEY, valueFrom: {secretKeyRef: {name: {{ $.Values.broker.existingTokenSecret }}, key: apiKey}}}
{{- end }}
- {name: FLEET_METRICS_PORT, value: {{ .Values.metrics.port | quote }}}
{{- end -}}

{{- define "fleet.edge.environment" -}}
{{- $address := .Values.edge.publicAddress }}
{{- include "fleet.environment.broker" . }}
- {name: FLEET_UDP_PORT, value: {{ .Values.edge.udpPort | quote }}}
{{- if $address.host }}
- {name: FLEET_UDP_PUBLIC, value: "{{ $address.host }}:{{ .Values.edge.udpPort }}"}
{{- else }}
{{- if $address.node }}
- {name: FLEET_NODE_NAME, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
- {name: FLEET_NODE_LABEL, value: {{ $address.nodeLabel | quote }}}
{{- end }}
{{- with $address.stunServers }}
- {name: FLEET_STUN_SERVERS, value: {{ join "," . | quote }}}
{{- end }}
{{- end }}
- {name: FLEET_EDGE_SESSIONS, value: {{ .Values.edge.sessions | int | quote }}}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "asr") }}
{{- include "fleet.environment.endpoint" (dict "root" . "endpoint" "tts") }}
- {name: FLEET_METRICS_PORT, value: {{ ternary .Values.edge.metricsPort .Values.metrics.port (eq .Values.edge.network "hostNetwork") | quote }}}
{{- end -}}

{{- define "fleet.front.environment" -}}
{{ include "fleet.environment.broker" . }}
- {name: FLEET_MQTT_PORT, value: "1883"}
{{- if .Values.front.tlsSecret }}
- {name: FLEET_MQTTS_PORT, value: "8883"}
- {name: FLEET_TLS_CERT, value: /etc/fleet/tls/tls.crt}
- {name: FLEET_TLS_KEY, value: /etc/fleet/tls/tls.key}
{{- end }}
- {name: FLEET_METRICS_PORT, value: {{ .Values.metrics.port | quote }}}
{{- end -}}

{{/* TLS ends at the ingress or at the service mesh. */}}
{{- define "fleet.control.environment" -}}
- {name: FLEET_CONTROL_HOST, value: 0.0.0.0}
- {name: FLEET_CONTROL_PORT, value: "8003"}
- {name: FLEET_CONTROL_PROXY, value: "true"}
- name: FLEET_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ .Values.control.database.existingSecret }}, key: {{ .Values.control.database.entry }}}}
- {name: FLEET_PUBLIC_HOST, value: {{ .Values.publicHost | quote }}}
{{- with .Values.control.trustedProxies }}
- {name: FLEET_TRUSTED_PROXIES, value: {{ . | quote }}}
{{- end }}
{{- if .Values.api.firmwareClaim }}
- {name: FLEET_FIRMWARE_DIR, value: /var/lib/fleet-firmware}
{{- end }}
- {name: FLEET_METRICS_PORT, value: {{ .Values.metrics.port | quote }}}
{{- end -}}
