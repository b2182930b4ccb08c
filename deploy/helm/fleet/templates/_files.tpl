{{/*
The files of the operator that a role reads, as YAML: name, setting, path, volume. Of (root, component).
Those with logins or hashes come from Secrets, the rest from ConfigMaps. No subPath: a mounted file must follow its source.
*/}}
{{- define "fleet.files" -}}
{{- $v := .root.Values }}
{{- $tools := list
    (dict "name" "mcp-servers" "setting" "FLEET_MCP_SERVERS" "from" $v.mcpServers)
    (dict "name" "characters" "setting" "FLEET_CHARACTERS" "from" $v.characters) }}
{{- $people := list
    (dict "name" "serials" "setting" "FLEET_SERIALS_FILE" "from" $v.serials)
    (dict "name" "operator-tokens" "setting" "FLEET_OPERATOR_TOKENS_FILE" "from" $v.operatorTokens) }}
{{- range index (dict "worker" $tools "gateway" $tools "api" $people "control" (rest $people)) .component | default list }}
{{- $items := list (dict "key" .from.entry "path" .from.entry) }}
{{- $volume := dict }}
{{- with .from.existingSecret }}{{ $volume = dict "secret" (dict "secretName" . "items" $items "defaultMode" 288) }}{{ end }}
{{- with .from.existingConfigMap }}{{ $volume = dict "configMap" (dict "name" . "items" $items) }}{{ end }}
{{- if $volume }}
- name: {{ .name }}
  setting: {{ .setting }}
  folder: /etc/fleet/{{ .name }}
  path: /etc/fleet/{{ .name }}/{{ .from.entry }}
  volume: {{ toJson (merge (dict "name" .name) $volume) }}
{{- end }}
{{- end }}
{{- end -}}
