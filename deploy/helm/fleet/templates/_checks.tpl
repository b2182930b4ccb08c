{{/* What no schema can say: values that contradict one another. Each message names what to set. */}}
{{- define "fleet.check" -}}
{{- $v := .Values -}}
{{- include "fleet.check.images" . -}}
{{- if and (not $v.keys.existingSecret) (not $v.keys.value) -}}
{{- fail "keys.existingSecret: name a Secret with the keys, one `id key` a line (or set keys.value to id:key)" -}}
{{- end -}}
{{- if and $v.keys.existingSecret $v.keys.value -}}
{{- fail "keys: set existingSecret or value, not both" -}}
{{- end -}}
{{- $brokers := list $v.broker.url (ternary "in-chart" "" $v.mosquitto.enabled) | compact -}}
{{- if ne (len $brokers) 1 -}}
{{- fail "broker.url: name your broker, or set mosquitto.enabled; one of them" -}}
{{- end -}}
{{- $stores := list $v.redis.url $v.redis.existingSecret (ternary "in-chart" "" $v.redisServer.enabled) | compact -}}
{{- if ne (len $stores) 1 -}}
{{- fail "redis.existingSecret: name a Secret with the URL of Redis (or redis.url, or redisServer.enabled); one of them" -}}
{{- end -}}
{{- if $v.redisServer.enabled -}}
{{- if ne (len (list $v.redisServer.existingSecret $v.redisServer.password | compact)) 1 -}}
{{- fail "redisServer.existingSecret: name a Secret with the password (or redisServer.password); one of them" -}}
{{- end -}}
{{- end -}}
{{- if not $v.models.llm.baseUrl -}}
{{- fail "models.llm.baseUrl: name an OpenAI-compatible endpoint, …/v1" -}}
{{- end -}}
{{- if not $v.publicHost -}}
{{- fail "publicHost: name the host by which devices reach the api and the broker" -}}
{{- end -}}
{{- if and $v.broker.emqxApiUrl (not $v.broker.existingTokenSecret) -}}
{{- fail "broker.existingTokenSecret: EMQX needs a Secret with the entries token and apiKey (key:secret)" -}}
{{- end -}}
{{- if and (include "fleet.brokerTls" .) $v.broker.public (not (hasSuffix ":8883" $v.broker.public)) -}}
{{- fail "broker.public: with a tlsSecret the broker has no port for plain MQTT, and firmware speaks TLS on port 8883 only; name that, or leave it empty" -}}
{{- end -}}
{{- if and $v.front.enabled $v.mosquitto.enabled -}}
{{- fail "front.enabled: the front is for brokers without our plugin; the Mosquitto of this chart has it" -}}
{{- end -}}
{{- if $v.edge.enabled -}}{{- include "fleet.check.edge" . -}}{{- end -}}
{{- if and $v.control.enabled (not $v.control.database.existingSecret) -}}
{{- fail "control.database.existingSecret: name a Secret with the URL of a PostgreSQL database" -}}
{{- end -}}
{{- include "fleet.check.settings" . -}}
{{- if and $v.redisServer.enabled (not $v.redisServer.image.tag) (not $v.redisServer.image.digest) -}}
{{- fail "redisServer.image: name a tag or a digest" -}}
{{- end -}}
{{- range $name := list "worker" "gateway" -}}
{{- $role := index $v $name -}}
{{- if and $role.autoscaling.enabled $role.keda.enabled -}}
{{- fail (printf "%s: set autoscaling.enabled or keda.enabled, not both" $name) -}}
{{- end -}}
{{- if and $role.keda.enabled (not $role.keda.triggers) -}}
{{- fail (printf "%s.keda.triggers: KEDA needs at least one" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "worker" "gateway" "api" -}}
{{- range $kind := list "autoscaling" "keda" -}}
{{- $scale := index (index $v $name) $kind | default dict -}}
{{- if and $scale.enabled (gt (int $scale.minReplicas) (int $scale.maxReplicas)) -}}
{{- fail (printf "%s.%s.minReplicas is more than its maxReplicas" $name $kind) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name := list "api" "gateway" "control" -}}
{{- $ingress := (index $v $name).ingress -}}
{{- if and $ingress.enabled (not $ingress.host) -}}
{{- fail (printf "%s.ingress.host: name the host" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* No pattern of the schema: its message would not say that a placeholder of the guide was left as it is. */}}
{{- define "fleet.check.images" -}}
{{- $v := .Values -}}
{{- $images := dict "image" $v.image "speechImage" $v.speechImage "mosquitto.image" $v.mosquitto.image "redisServer.image" $v.redisServer.image -}}
{{- range $name, $image := $images -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9._/:-]*[a-z0-9])?$" $image.repository) -}}
{{- fail (printf "%s.repository: %q is not the name of an image; write the name of your registry, in lower case, such as registry.example.org/voice/fleet" $name $image.repository) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Variables that would contradict the pod around them, or show a secret to whoever may read pods. */}}
{{- define "fleet.check.settings" -}}
{{- $instead := dict
    "FLEET_DRAIN_SECONDS" "drainSeconds of the role"
    "FLEET_METRICS_PORT" "metrics.port and edge.metricsPort"
    "FLEET_METRICS_HOST" "nothing: the probes come from outside"
    "FLEET_UDP_PORT" "edge.udpPort"
    "FLEET_UDP_PUBLIC" "edge.publicAddress"
    "FLEET_HTTP_PORT" "api.service.port"
    "FLEET_HTTP_HOST" "nothing: the probes come from outside"
    "FLEET_MQTT_PORT" "broker.public"
    "CLOUD_PORT" "gateway.service.port"
    "CLOUD_HOST" "nothing: the probes come from outside"
    "FLEET_KEYS" "keys.existingSecret"
    "FLEET_KEYS_FILE" "keys.existingSecret"
    "FLEET_SECRET_KEYS" "secretKeys.existingSecret"
    "FLEET_SHARDS" "shards"
    "FLEET_REDIS_URL" "redis.existingSecret"
    "FLEET_MCP_SERVERS" "mcpServers.existingSecret"
    "FLEET_CHARACTERS" "characters.existingConfigMap"
    "FLEET_SERIALS_FILE" "serials.existingSecret"
    "FLEET_OPERATOR_TOKENS_FILE" "operatorTokens.existingSecret"
    "FLEET_CONTROL_HOST" "nothing: the probes come from outside"
    "FLEET_CONTROL_PORT" "control.service.port"
    "FLEET_DATABASE_URL" "control.database.existingSecret"
    "FLEET_FIRMWARE_DIR" "api.firmwareClaim" -}}
{{- $places := dict "settings" .Values.settings -}}
{{- range $name := list "worker" "gateway" "api" "edge" "front" "control" -}}
{{- $_ := set $places (printf "%s.env" $name) (index $.Values $name).env -}}
{{- end -}}
{{- range $place, $variables := $places -}}
{{- range $name, $_ := $variables -}}
{{- with get $instead $name -}}
{{- fail (printf "%s.%s: set %s" $place $name .) -}}
{{- end -}}
{{- if regexMatch "_(API_KEY|TOKEN)$" $name -}}
{{- fail (printf "%s.%s: a secret; put it into the Secret of settingsSecret" $place $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fleet.check.edge" -}}
{{- $v := .Values -}}{{- $a := $v.edge.publicAddress -}}
{{- if and $a.host (or (eq $v.edge.kind "DaemonSet") (gt (int $v.edge.replicas) 1)) -}}
{{- fail (printf "edge.publicAddress.host is one address, so it fits one edge only: set edge.kind=Deployment and edge.replicas=1, or label each node %s=ADDRESS and leave it empty" $a.nodeLabel) -}}
{{- end -}}
{{- if and (not $a.host) (not $a.node) (not $a.stunServers) -}}
{{- fail "edge.publicAddress: set host, node or stunServers; an address is never guessed" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (eq $v.edge.network "hostNetwork") (or $v.mosquitto.enabled $v.redisServer.enabled) (not $v.networkPolicy.nodeCidrs) -}}
{{- fail "networkPolicy.nodeCidrs: edges on the network of their nodes reach Mosquitto and Redis from the nodes' addresses; name these networks" -}}
{{- end -}}
{{- end -}}
