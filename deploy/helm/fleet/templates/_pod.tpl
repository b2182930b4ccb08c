{{/* Nothing that a process does not need: Kubernetes calls it "restricted". */}}
{{- define "fleet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "fleet.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* Where a pod may run. Of (root, component, role). Without constraints of their own pods spread over nodes and zones. */}}
{{- define "fleet.placement" -}}
{{- with .role.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .role.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .role.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .role.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if and (hasKey .role "topologySpreadConstraints") (ne (.role.kind | default "") "DaemonSet") }}
topologySpreadConstraints:
  {{- if .role.topologySpreadConstraints }}
  {{- toYaml .role.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "fleet.selector" $ | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end -}}

{{/*
Labels and annotations of a pod. What it is told by a Secret or ConfigMap of this chart is in the checksum, so that a change starts it anew;
nothing else is, nor the chart's version: neither broker nor Redis shall restart for what does not concern them.
Of (root, component, role, told).
*/}}
{{- define "fleet.podMetadata" -}}
labels:
  {{- include "fleet.selector" . | nindent 2 }}
  {{- with merge (dict) (.role.podLabels | default dict) .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
annotations:
  checksum/told: {{ toJson (list .root.Values.redisServer.password .told) | sha256sum }}
  {{- with merge (dict) (.role.podAnnotations | default dict) .root.Values.commonAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "fleet.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 2
  failureThreshold: 90
  timeoutSeconds: 2
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 5
  failureThreshold: 2
  timeoutSeconds: 3
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 10
  failureThreshold: 6
  timeoutSeconds: 5
{{- end -}}

{{- define "fleet.volumeMounts" -}}
- {name: keys, mountPath: /etc/fleet/keys, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.authorities.existingSecret }}
- {name: authorities, mountPath: /etc/fleet/authorities, readOnly: true}
{{- end }}
{{- end -}}

{{- define "fleet.volumes" -}}
- name: keys
  secret:
    secretName: {{ .Values.keys.existingSecret | default (printf "%s-keys" (include "fleet.fullname" .)) }}
    items: [{key: {{ .Values.keys.entry }}, path: {{ .Values.keys.entry }}}]
    defaultMode: 0440
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with .Values.authorities.existingSecret }}
- name: authorities
  secret: {secretName: {{ . }}}
{{- end }}
{{- end -}}

{{/*
The pod of a role: metadata and spec.
Of (root, component, role) and: command, image (rendered), pullPolicy, environment and ports and mounts and volumes (rendered), probe
(port), drain and grace (seconds), account (rendered, optional), token (bool), host (bool), sleep (seconds before SIGTERM).
*/}}
{{- define "fleet.pod" -}}
metadata:
  {{- $told := dict }}
  {{- range $name, $key := .root.Values.models.apiKeys }}
  {{- if contains (printf "%s_API_KEY" (upper $name)) $.environment }}{{ $_ := set $told $name $key }}{{ end }}
  {{- end }}
  {{- include "fleet.podMetadata" (merge (dict "told" $told) .) | nindent 2 }}
spec:
  serviceAccountName: {{ .account | default (include "fleet.serviceAccount" .root) }}
  automountServiceAccountToken: {{ .token | default false }}
  enableServiceLinks: false
  {{- if .host }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "fleet.podSecurity" 10001 | nindent 4 }}
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with include "fleet.placement" . }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ .image }}
      imagePullPolicy: {{ .pullPolicy }}
      args: [{{ .command }}]
      env:
        {{- include "fleet.environment.whole" . | nindent 8 }}
      {{- with .root.Values.settingsSecret }}
      envFrom: [{secretRef: {name: {{ . }}}}]
      {{- end }}
      ports: {{- .ports | nindent 8 }}
      {{- include "fleet.probes" .probe | nindent 6 }}
      {{- with .sleep }}
      lifecycle:
        preStop: {exec: {command: [sleep, {{ . | quote }}]}}
      {{- end }}
      securityContext: {{- include "fleet.containerSecurity" . | nindent 8 }}
      resources: {{- toYaml .role.resources | nindent 8 }}
      volumeMounts:
        {{- include "fleet.volumeMounts" .root | nindent 8 }}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- range fromYamlArray (include "fleet.files" .) }}
        - {name: {{ .name }}, mountPath: {{ .folder }}, readOnly: true}
        {{- end }}
  volumes:
    {{- include "fleet.volumes" .root | nindent 4 }}
    {{- range fromYamlArray (include "fleet.files" .) }}
    - {{ toJson .volume }}
    {{- end }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* A PodDisruptionBudget. Of (root, component, role). */}}
{{- define "fleet.budget" -}}
{{- if .role.podDisruptionBudget.enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "fleet.metadata" . | nindent 2 }}
spec:
  maxUnavailable: {{ .role.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {{- include "fleet.selector" . | nindent 6 }}
{{- end }}
{{- end -}}

{{/* How many: an autoscaler of Kubernetes, or of KEDA. Of (root, component, role). */}}
{{- define "fleet.scaling" -}}
{{- if .role.autoscaling.enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  {{- include "fleet.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "fleet.fullname" .root }}-{{ .component }}}
  minReplicas: {{ .role.autoscaling.minReplicas }}
  maxReplicas: {{ .role.autoscaling.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ .role.autoscaling.targetCPUUtilizationPercentage }}}
  behavior: {{- include "fleet.behavior" .role.autoscaling.scaleDownSeconds | nindent 4 }}
{{- else if (.role.keda | default dict).enabled }}
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  {{- include "fleet.metadata" . | nindent 2 }}
spec:
  scaleTargetRef: {name: {{ include "fleet.fullname" .root }}-{{ .component }}}
  minReplicaCount: {{ .role.keda.minReplicas }}
  maxReplicaCount: {{ .role.keda.maxReplicas }}
  cooldownPeriod: {{ .role.keda.cooldownSeconds }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior: {{- include "fleet.behavior" .role.keda.cooldownSeconds | nindent 8 }}
  triggers: {{- toYaml .role.keda.triggers | nindent 4 }}
{{- end }}
{{- end -}}

{{/* One pod goes at a time, so that each drains before the next one does. Of the seconds to look back. */}}
{{- define "fleet.behavior" -}}
scaleDown:
  stabilizationWindowSeconds: {{ . }}
  policies: [{type: Pods, value: 1, periodSeconds: 60}]
{{- end -}}

{{/* `yes` where something else decides how many there are. Of a role. */}}
{{- define "fleet.scaled" -}}
{{- if or .autoscaling.enabled (.keda | default dict).enabled -}}yes{{- end -}}
{{- end -}}

{{/* An Ingress. Of (root, component, role, port). */}}
{{- define "fleet.ingress" -}}
{{- $ingress := .role.ingress }}
{{- if $ingress.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  {{- include "fleet.metadata" (merge (dict "annotations" $ingress.annotations) .) | nindent 2 }}
spec:
  {{- with $ingress.className }}
  ingressClassName: {{ . }}
  {{- end }}
  {{- with $ingress.tlsSecret }}
  tls: [{hosts: [{{ $ingress.host | quote }}], secretName: {{ . }}}]
  {{- end }}
  rules:
    - host: {{ $ingress.host | quote }}
      http:
        paths:
          {{- range $ingress.paths }}
          - path: {{ . }}
            pathType: Prefix
            backend: {service: {name: {{ include "fleet.fullname" $.root }}-{{ $.component }}, port: {name: {{ $.port }}}}}
          {{- end }}
{{- end }}
{{- end -}}
