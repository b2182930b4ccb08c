{{/* What no schema can say: values that contradict one another. Each message names what to set. */}}
{{- define "fleet.check" -}}
{{- $v := .Values -}}
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
{{- if and $v.front.enabled $v.mosquitto.enabled -}}
{{- fail "front.enabled: the front is for brokers without our plugin; the Mosquitto of this chart has it" -}}
{{- end -}}
{{- if $v.edge.enabled -}}{{- include "fleet.check.edge" . -}}{{- end -}}
{{- range $name := list "worker" "gateway" -}}
{{- $role := index $v $name -}}
{{- if and $role.autoscaling.enabled $role.keda.enabled -}}
{{- fail (printf "%s: set autoscaling.enabled or keda.enabled, not both" $name) -}}
{{- end -}}
{{- if and $role.keda.enabled (not $role.keda.triggers) -}}
{{- fail (printf "%s.keda.triggers: KEDA needs at least one" $name) -}}
{{- end -}}
{{- end -}}
{{- range $name := list "api" "gateway" -}}
{{- $ingress := (index $v $name).ingress -}}
{{- if and $ingress.enabled (not $ingress.host) -}}
{{- fail (printf "%s.ingress.host: name the host" $name) -}}
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
