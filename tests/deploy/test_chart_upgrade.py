"""What an upgrade with other values starts anew, and what it leaves alone; where secrets end up."""

import json
from typing import Any

import pytest

from tests.support.chart import OWN_BROKER, OWN_REDIS, Values, environment, find, joined, render
from tests.support.kubernetes_schemas import Manifest

PLANTED = {
    "keys": {"existingSecret": "", "value": "k1:planted-key-0123456789"},
    "models": {"apiKeys": {name: f"planted-{name}" for name in ("llm", "asr", "tts", "vision")}},
    "redisServer": {"existingSecret": "", "password": "planted-password"},
}
WHOLE = joined(OWN_BROKER, OWN_REDIS, PLANTED)
ROLES = {"worker", "gateway", "api", "edge"}
WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")


def templates(values: Values) -> dict[str, Manifest]:
    return {
        one["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]: one["spec"]["template"]
        for one in render(values)
        if one["kind"] in WORKLOADS
    }


@pytest.mark.parametrize(
    ("change", "anew"),
    [
        ({}, set()),
        ({"redisServer": {"maxmemory": "1gb"}}, {"redis"}),
        ({"redisServer": {"password": "another"}}, {*ROLES, "redis", "mosquitto"}),
        ({"models": {"apiKeys": {"llm": "another"}}}, {"worker", "gateway", "api"}),
        ({"models": {"apiKeys": {"tts": "another"}}}, {"edge"}),
        ({"keys": {"value": "k2:another-key-0123456789,k1:planted-key-0123456789"}}, set()),
        ({"settings": {"FLEET_LANGUAGE": "zh"}}, ROLES),
        ({"worker": {"env": {"FLEET_LANGUAGE": "zh"}}}, {"worker"}),
        ({"worker": {"replicas": 5}, "gateway": {"podDisruptionBudget": {"enabled": False}}}, set()),
        ({"image": {"tag": "9.9.9"}}, {"worker", "gateway", "api", "mosquitto"}),
        ({"speechImage": {"tag": "9.9.9-speech"}}, {"edge"}),
        ({"characters": {"existingConfigMap": "characters"}}, {"worker", "gateway"}),
        ({"serials": {"existingSecret": "serials"}}, {"api"}),
    ],
)
def test_an_upgrade_starts_anew_what_the_change_concerns(change: dict[str, Any], anew: set[str]) -> None:
    before, after = templates(WHOLE), templates(joined(WHOLE, change))
    assert {role for role, template in after.items() if template != before[role]} == anew


def test_a_new_version_of_the_chart_alone_restarts_nothing() -> None:
    for role, template in templates(WHOLE).items():
        assert template["metadata"]["labels"].keys() == {
            f"app.kubernetes.io/{name}" for name in ("name", "instance", "component")
        }, role


def test_secrets_are_in_secrets_and_nowhere_else() -> None:
    found = render(WHOLE)
    having = {one["kind"] for one in found if "planted" in json.dumps(one)}
    assert having == {"Secret"}
    assert sum(json.dumps(one).count("planted") for one in found) == 6


def test_a_file_is_mounted_for_those_who_read_it() -> None:
    told: dict[str, dict[str, str]] = {}
    for role, template in templates(
        {
            "mcpServers": {"existingSecret": "mcp", "entry": "servers.json"},
            "characters": {"existingConfigMap": "characters"},
            "serials": {"existingSecret": "serials"},
            "operatorTokens": {"existingSecret": "operators"},
        }
    ).items():
        (container,) = template["spec"]["containers"]
        folders = {one["mountPath"]: one for one in container["volumeMounts"]}
        volumes = {one["name"]: one for one in template["spec"]["volumes"]}
        for name, path in environment(container).items():
            folder, _, file = str(path).rpartition("/")
            if not folder.startswith("/etc/fleet/") or name == "FLEET_KEYS_FILE":
                continue
            mount = folders[folder]
            # With a subPath a pod would keep the first text for ever.
            assert mount["readOnly"] is True and "subPath" not in mount
            volume = volumes[mount["name"]]
            source = volume.get("secret", volume.get("configMap"))
            assert source["items"] == [{"key": file, "path": file}]
            told.setdefault(role, {})[name] = source.get("secretName", source.get("name"))
    tools = {"FLEET_MCP_SERVERS": "mcp", "FLEET_CHARACTERS": "characters"}
    assert told == {
        "worker": tools,
        "gateway": tools,
        "api": {"FLEET_SERIALS_FILE": "serials", "FLEET_OPERATOR_TOKENS_FILE": "operators"},
    }


def test_every_role_sends_its_traces() -> None:
    for role, template in templates({"traces": {"otlpEndpoint": "http://otel:4318"}}).items():
        assert environment(template["spec"]["containers"][0])["FLEET_OTLP_ENDPOINT"] == "http://otel:4318", role
    for template in templates({}).values():
        assert "FLEET_OTLP_ENDPOINT" not in environment(template["spec"]["containers"][0])


def test_a_setting_of_the_operator_replaces_the_charts_and_stays_a_number() -> None:
    worker = templates({"worker": {"env": {"FLEET_LOG_LEVEL": "debug", "CLOUD_MAX_CONNECTIONS": 1000000}}})["worker"]
    variables = worker["spec"]["containers"][0]["env"]
    assert [one["value"] for one in variables if one["name"] == "FLEET_LOG_LEVEL"] == ["debug"]
    assert [one["value"] for one in variables if one["name"] == "CLOUD_MAX_CONNECTIONS"] == ["1000000"]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, None),
        ({"front": {"enabled": True, "tlsSecret": "tls"}}, "voice.example.org:8883"),
        (joined(OWN_BROKER, {"mosquitto": {"tlsSecret": "tls"}}), "voice.example.org:8883"),
        (
            {"broker": {"public": "mqtt.example.org:8883"}, "front": {"enabled": True, "tlsSecret": "tls"}},
            "mqtt.example.org:8883",
        ),
        ({"broker": {"public": "mqtt.example.org:1884"}}, "mqtt.example.org:1884"),
    ],
)
def test_devices_are_sent_to_a_port_that_there_is(values: Values, told: str | None) -> None:
    api = find(render(values), "Deployment", "api")["spec"]["template"]["spec"]["containers"][0]
    assert environment(api).get("FLEET_MQTT_PUBLIC") == told
