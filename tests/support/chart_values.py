"""Sets of values with which the chart must render."""

from typing import Any

from tests.support.chart import OWN_BROKER, OWN_REDIS, joined

HPA = {"enabled": True, "minReplicas": 3, "maxReplicas": 9}
KEDA = {
    "enabled": True,
    "triggers": [{"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "q", "threshold": "1"}}],
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {}},
}
PLACED = {
    "nodeSelector": {"pool": "voice"},
    "tolerations": [{"key": "voice", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "high",
}

SETS: dict[str, dict[str, Any]] = {
    "least": {},
    "own broker": OWN_BROKER,
    "own Redis": OWN_REDIS,
    "own broker and Redis": joined(OWN_BROKER, OWN_REDIS),
    "own broker with TLS": joined(
        OWN_BROKER, {"mosquitto": {"tlsSecret": "voice-tls", "service": {"type": "NodePort"}}}
    ),
    "keys in values": {"keys": {"existingSecret": "", "value": "k2:0123456789abcdef01,k1:fedcba9876543210fe"}},
    "Redis by URL": {"redis": {"existingSecret": "", "url": "rediss+sentinel://s1:26379,s2:26379/primary"}},
    "Redis with a password in values": joined(OWN_REDIS, {"redisServer": {"existingSecret": "", "password": "abc123"}}),
    "front": {"front": {"enabled": True}},
    "front with TLS": {"front": {"enabled": True, "tlsSecret": "voice-tls", "service": {"annotations": {"a": "b"}}}},
    "EMQX": {"broker": {"url": "mqtts://emqx:8883", "existingTokenSecret": "emqx", "emqxApiUrl": "http://emqx:18083"}},
    "ingress": {
        "api": {"ingress": {"enabled": True, "host": "voice.example.org", "tlsSecret": "tls", "className": "nginx"}},
        "gateway": {"ingress": {"enabled": True, "host": "chat.example.org", "annotations": {"x/timeout": "3600"}}},
    },
    "HPA": {"worker": {"autoscaling": HPA}, "gateway": {"autoscaling": HPA}, "api": {"autoscaling": HPA}},
    "KEDA": {"worker": {"keda": KEDA}, "gateway": {"keda": KEDA}},
    "edge as Deployment": {"edge": {"kind": "Deployment", "replicas": 3}},
    "edge on a host port": {"edge": {"network": "hostPort", "udpPort": 9000}},
    "edge with STUN only": {"edge": {"publicAddress": {"node": False, "stunServers": ["stun.example.org:3478", "s2"]}}},
    "one edge with its address": {
        "edge": {"kind": "Deployment", "replicas": 1, "publicAddress": {"host": "203.0.113.9"}}
    },
    "no edge": {"edge": {"enabled": False}},
    "control": {
        "control": {
            "enabled": True,
            "database": {"existingSecret": "database"},
            "ingress": {"enabled": True, "host": "fleet.example.org", "tlsSecret": "tls"},
            "trustedProxies": "10.0.0.0/8",
        },
        "operatorTokens": {"existingSecret": "operators"},
    },
    "keys of providers": {
        "control": {"enabled": True, "database": {"existingSecret": "database"}},
        "secretKeys": {"existingSecret": "provider-keys"},
    },
    "no gateway": {"gateway": {"enabled": False}},
    "endpoints for speech": {
        "models": {
            "asr": {"baseUrl": "http://asr/v1", "model": "w"},
            "tts": {"baseUrl": "http://tts/v1", "model": "t", "voice": "v"},
            "vision": {"baseUrl": "http://v/v1", "model": "v"},
            "apiKeys": {"llm": "sk-1", "asr": "sk-2", "tts": "sk-3", "vision": "sk-4"},
        }
    },
    "secret with the models' keys": {"models": {"existingSecret": "model-keys"}},
    "Prometheus operator": {"metrics": {"serviceMonitor": {"create": "always", "labels": {"release": "p"}}}},
    "dashboards": {"metrics": {"dashboards": {"create": "always"}}},
    "network policy": {"networkPolicy": {"enabled": True}},
    "network policy with everything": joined(
        OWN_BROKER,
        OWN_REDIS,
        {"networkPolicy": {"enabled": True, "nodeCidrs": ["10.0.0.0/16", "fd00::/8"]}},
        {"control": {"enabled": True, "database": {"existingSecret": "database"}}},
    ),
    "images by digest": {
        "image": {"repository": "registry.example.org:5000/voice/fleet", "digest": f"sha256:{'a' * 64}"},
        "speechImage": {"tag": "0.2.0-speech", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
    },
    "placed": {
        role: {**PLACED, "topologySpreadConstraints": [SPREAD]} for role in ("worker", "gateway", "api", "edge")
    },
    "own settings": {
        "settings": {"FLEET_LANGUAGE": "zh", "FLEET_LOG_PII": False},
        "settingsSecret": "more-settings",
        "worker": {"env": {"LLM_TIMEOUT": 12.5}},
    },
    "one role louder than the others": {
        "worker": {"env": {"FLEET_LOG_LEVEL": "debug", "CLOUD_MAX_CONNECTIONS": 1000000}}
    },
    "files": {
        "mcpServers": {"existingSecret": "mcp"},
        "characters": {"existingConfigMap": "characters", "entry": "ours.toml"},
        "serials": {"existingSecret": "serials"},
        "operatorTokens": {"existingSecret": "operators"},
    },
    "files, but no gateway": {"gateway": {"enabled": False}, "mcpServers": {"existingSecret": "mcp"}},
    "traces": {"traces": {"otlpEndpoint": "http://otel.monitoring:4318"}},
    "authorities": {"authorities": {"existingSecret": "private-ca"}},
    "firmware": {"api": {"firmwareClaim": "firmware", "trustedProxies": "10.0.0.0/8"}},
    "names and labels": {
        "fullnameOverride": "v",
        "commonLabels": {"team": "voice"},
        "commonAnnotations": {"owner": "us"},
        "serviceAccount": {"create": False, "name": "there"},
    },
    "no budgets": {role: {"podDisruptionBudget": {"enabled": False}} for role in ("worker", "gateway", "api")},
}
