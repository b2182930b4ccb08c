"""Wrong values: refused by the schema, or by a check that names what to set."""

from typing import Any

import helm_python
import pytest

from tests.support.chart import CHART, OWN_BROKER, OWN_REDIS, joined, render

WRONG: dict[str, dict[str, Any]] = {
    "a name that is no value": {"wroker": {}},
    "a name inside a role that is no value": {"worker": {"replicaz": 3}},
    "replicas that are text": {"worker": {"replicas": "three"}},
    "no replicas": {"api": {"replicas": 0}},
    "shards that do not divide 256": {"shards": 12},
    "a port beyond the last": {"edge": {"udpPort": 70000}},
    "another kind of edge": {"edge": {"kind": "StatefulSet"}},
    "another network": {"edge": {"network": "loadBalancer"}},
    "an address with a port": {"edge": {"publicAddress": {"host": "203.0.113.9:8884"}}},
    "the tag latest": {"image": {"tag": "latest"}},
    "half a digest": {"image": {"digest": "sha256:abc"}},
    "a key that is too short": {"keys": {"existingSecret": "", "value": "k1:short"}},
    "an activation that there is not": {"activation": "everybody"},
    "a broker with a user name": {"broker": {"url": "mqtt://me@broker:1883"}},
    "an endpoint without a scheme": {"models": {"llm": {"baseUrl": "llm/v1"}}},
    "an unknown model": {"models": {"embeddings": {}}},
    "a setting that cannot be one": {"settings": {"PATH": "/"}},
    "a password that breaks the URL": {"redisServer": {"password": "a@b"}},
    "a memory that is no quantity": {"worker": {"resources": {"limits": {"memory": "much"}}}},
    "a password in Redis's URL": {"redis": {"existingSecret": "", "url": "redis://:abc@redis:6379/0"}},
    "a collector without a scheme": {"traces": {"otlpEndpoint": "otel:4318"}},
    "a file of logins in a ConfigMap": {"mcpServers": {"existingConfigMap": "mcp"}},
    "an entry with a slash": {"serials": {"existingSecret": "serials", "entry": "../serials"}},
    "a trigger without a type": {"worker": {"keda": {"triggers": [{"metadata": {}}]}}},
}

CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a placeholder in place of a registry": (
        {"speechImage": {"repository": "REGISTRY/fleet"}},
        r'speechImage\.repository: "REGISTRY/fleet" is not .* write the name of your registry',
    ),
    "a placeholder in place of the registry of Mosquitto": (
        {"mosquitto": {"image": {"repository": "…/fleet-mosquitto"}}},
        r"mosquitto\.image\.repository",
    ),
    "no keys": ({"keys": {"existingSecret": ""}}, "keys.existingSecret"),
    "keys twice": ({"keys": {"value": "k1:0123456789abcdef"}}, "not both"),
    "no broker": ({"broker": {"url": ""}}, "broker.url"),
    "two brokers": ({"mosquitto": {"enabled": True}}, "one of them"),
    "no Redis": ({"redis": {"existingSecret": ""}}, "redis.existingSecret"),
    "Redis without a password": (
        joined(OWN_REDIS, {"redisServer": {"existingSecret": ""}}),
        "redisServer.existingSecret",
    ),
    "no model": ({"models": {"llm": {"baseUrl": ""}}}, "models.llm.baseUrl"),
    "no public host": ({"publicHost": ""}, "publicHost"),
    "an ingress without a host": ({"api": {"ingress": {"enabled": True}}}, "api.ingress.host"),
    "two autoscalers": (
        {
            "worker": {
                "autoscaling": {"enabled": True},
                "keda": {"enabled": True, "triggers": [{"type": "a", "metadata": {}}]},
            }
        },
        "not both",
    ),
    "KEDA without a trigger": ({"gateway": {"keda": {"enabled": True}}}, "gateway.keda.triggers"),
    "one address for edges on many nodes": ({"edge": {"publicAddress": {"host": "203.0.113.9"}}}, "fits one edge only"),
    "no way to know an edge's address": ({"edge": {"publicAddress": {"node": False}}}, "never guessed"),
    "front before our own Mosquitto": (joined(OWN_BROKER, {"front": {"enabled": True}}), "front.enabled"),
    "EMQX without its secret": ({"broker": {"emqxApiUrl": "http://emqx:18083"}}, "existingTokenSecret"),
    "more replicas at least than at most": (
        {"api": {"autoscaling": {"enabled": True, "minReplicas": 9, "maxReplicas": 3}}},
        "api.autoscaling.minReplicas",
    ),
    "Redis without a version": (joined(OWN_REDIS, {"redisServer": {"image": {"tag": ""}}}), "redisServer.image"),
    "TLS on a port that firmware does not know": (
        {"front": {"enabled": True, "tlsSecret": "tls"}, "broker": {"public": "voice.example.org:1883"}},
        "broker.public",
    ),
    "a drain time that the grace period does not know": (
        {"worker": {"env": {"FLEET_DRAIN_SECONDS": 600}}},
        "worker.env.FLEET_DRAIN_SECONDS: set drainSeconds",
    ),
    "a port that the probes do not know": ({"settings": {"FLEET_METRICS_PORT": 9999}}, "settings.FLEET_METRICS_PORT"),
    "a file that is not mounted": ({"settings": {"FLEET_MCP_SERVERS": "/mcp.json"}}, "mcpServers.existingSecret"),
    "a key in clear": ({"gateway": {"env": {"LLM_FALLBACK_API_KEY": "sk-1"}}}, "settingsSecret"),
    "control without a database": ({"control": {"enabled": True}}, "control.database.existingSecret"),
    "a password of a database in clear": (
        {"control": {"env": {"FLEET_DATABASE_URL": "postgresql://me:pw@db/fleet"}}},
        "control.env.FLEET_DATABASE_URL: set control.database.existingSecret",
    ),
    "policy that would cut off edges": (
        joined(OWN_REDIS, {"networkPolicy": {"enabled": True}}),
        "networkPolicy.nodeCidrs",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_schema_refuses(name: str) -> None:
    with pytest.raises(helm_python.HelmValuesError, match="schema"):
        render(WRONG[name])
    assert helm_python.lint(CHART, joined(WRONG[name]), strict=True)["errors"]


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_check_names_what_to_set(name: str) -> None:
    values, named = CONTRADICTIONS[name]
    with pytest.raises(helm_python.HelmRenderError, match=named):
        render(values)
