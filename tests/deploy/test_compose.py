"""The compose file: valid with each profile, strict about secrets, and its containers have no more than they need."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.compose import DEPLOY, REQUIRED, compose, services
from tests.support.deployed_settings import COMPOSED, fixed, handed_on, read_by, unknown

ROLES = {"worker", "edge", "gateway", "api", "control"}
OURS = ROLES | {"mosquitto", "redis"}
WATCHING = {"prometheus", "grafana", "otel", "jaeger"}
MAY_WRITE = {"emqx"}
"""EMQX keeps what it makes of its configuration beside it."""


@pytest.mark.parametrize(
    ("profiles", "there"),
    [
        ((), OURS),
        (("emqx",), OURS | {"emqx"}),
        (("observability",), OURS | WATCHING),
        (("emqx", "observability"), OURS | WATCHING | {"emqx"}),
    ],
)
def test_each_profile_is_valid(tmp_path: Path, profiles: tuple[str, ...], there: set[str]) -> None:
    assert set(services(tmp_path, *profiles)) == there


@pytest.mark.parametrize("name", REQUIRED)
def test_what_is_missing_is_named(tmp_path: Path, name: str) -> None:
    for variables in ({one: REQUIRED[one] for one in REQUIRED if one != name}, {**REQUIRED, name: ""}):
        done = compose(tmp_path, variables, "config", "-q")
        assert done.returncode != 0
        assert f"required variable {name} is missing a value: set {name} in .env" in done.stderr


def test_the_example_names_what_is_required() -> None:
    lines = (DEPLOY / ".env.example").read_text().splitlines()
    assert {line.removesuffix("=") for line in lines if line and line[0] != "#"} == set(REQUIRED)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return services(
        tmp_path_factory.mktemp("compose"), "emqx", "observability", LLM_API_KEY="sk-1", ASR_BASE_URL="http://a/v1"
    )


def test_every_variable_is_a_setting(everything: dict[str, Any]) -> None:
    for name in ROLES:
        assert unknown(set(everything[name]["environment"])) == set()


def test_images_are_pinned(everything: dict[str, Any]) -> None:
    for name, service in everything.items():
        assert service["image"].rpartition(":")[2] not in ("", "latest", service["image"]), name


def test_containers_have_nothing_that_they_do_not_need(everything: dict[str, Any]) -> None:
    for name, service in everything.items():
        assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"], name
        assert service.get("read_only") is True or name in MAY_WRITE, name
        assert service["restart"] == "unless-stopped" and not service.get("privileged")
        assert service["deploy"]["resources"]["limits"].keys() >= {"cpus", "memory"}, name
        assert service["logging"]["options"]["max-size"], name
        # Ours say in their Dockerfile who they are (test_image.py), and EMQX in its own.
        assert "build" in service or name in MAY_WRITE or service["user"].split(":")[0] not in ("", "0", "root"), name


def test_a_container_is_given_longer_than_its_role_drains(everything: dict[str, Any]) -> None:
    for name in ROLES:
        drain = float(everything[name]["environment"].get("FLEET_DRAIN_SECONDS", 0))
        assert float(everything[name]["stop_grace_period"].removesuffix("s")) >= drain + 7, name


def test_every_container_that_can_be_asked_is(everything: dict[str, Any]) -> None:
    silent = {name for name, service in everything.items() if service["healthcheck"].get("disable")}
    assert silent == {"otel", "jaeger"}
    for name in ROLES:
        assert everything[name]["healthcheck"]["test"][:4] == ["CMD", "python", "-m", "fleet.operations.health_command"]


def test_redis_is_reached_from_inside_only(everything: dict[str, Any]) -> None:
    assert list(everything["redis"]["networks"]) == ["inside"] and "ports" not in everything["redis"]
    for name in WATCHING | {"emqx"}:
        for port in everything[name].get("ports", []):
            assert port.get("host_ip") == "127.0.0.1" or port["target"] in (1883, 8883), name


def test_only_who_needs_it_has_a_secret(tmp_path: Path) -> None:
    names = ("LLM_API_KEY", "LLM_FALLBACK_API_KEY", "ASR_API_KEY", "FLEET_BROKER_TOKEN", "FLEET_EMQX_API_KEY")
    found = services(tmp_path, **dict.fromkeys(names, "a:b"))
    having = {one: {name for name in found if one in (found[name].get("environment") or {})} for one in names}
    # Control tries agents in text.
    chat = {"worker", "gateway", "control"}
    assert list(having.values()) == [{"api", *chat}, chat, {"edge"}, {"api"}, {"api"}]


@pytest.mark.parametrize("role", COMPOSED)
def test_the_list_of_what_a_role_is_given_is_that_of_what_it_reads(role: str) -> None:
    listed = (DEPLOY / "settings" / f"{role}.env").read_text(encoding="utf-8")
    assert listed == handed_on(role), "run `python -m tests.support.deployed_settings`"


def test_every_setting_reaches_the_roles_that_read_it_from_the_file_of_the_operator(tmp_path: Path) -> None:
    values = {name: f"value-of-{name}" for role in COMPOSED for name in read_by(role)}
    found = services(tmp_path, **values)
    for role in COMPOSED:
        given = found[role]["environment"]
        reached = {name for name in read_by(role) if given.get(name) == values[name]}
        assert set(read_by(role)) - reached == fixed(role), role


def test_the_example_names_what_it_cannot_set() -> None:
    *_, section = re.split(r"^# --- ", (DEPLOY / ".env.example").read_text(encoding="utf-8"), flags=re.M)[:4]
    assert section.startswith("Without effect here")
    named = re.findall(r"\b(?:FLEET|CLOUD)_[A-Z_]+(?=[,:])", section)
    assert sorted(named) == sorted(set().union(*map(fixed, COMPOSED)))


def test_a_variable_that_is_not_set_is_not_set_to_nothing(tmp_path: Path) -> None:
    for name in ROLES:
        assert "" not in services(tmp_path)[name]["environment"].values(), name


def test_emqx_replaces_mosquitto(tmp_path: Path) -> None:
    found = services(tmp_path, "emqx", MOSQUITTO_REPLICAS="0", FLEET_MQTT_URL="mqtt://emqx:1883")
    assert found["mosquitto"]["deploy"]["replicas"] == 0
    assert found["worker"]["environment"]["FLEET_MQTT_URL"] == "mqtt://emqx:1883"
    assert all(not one["required"] for name, one in found["worker"]["depends_on"].items() if name != "redis")


def test_devices_are_told_the_ports_of_this_machine(tmp_path: Path) -> None:
    found = services(tmp_path, MQTT_PORT="11883", UDP_PORT="18884", HTTP_PORT="18000")
    assert found["edge"]["environment"]["FLEET_UDP_PUBLIC"] == "voice.example.org:18884"
    api = found["api"]["environment"]
    assert api["FLEET_MQTT_PUBLIC"] == "voice.example.org:11883"
    assert api["FLEET_HTTP_PUBLIC"] == "http://voice.example.org:18000"


def test_files_of_the_operator_are_where_their_settings_say(tmp_path: Path) -> None:
    files = {
        "FLEET_MCP_SERVERS": "/etc/fleet/tools/mcp.json",
        "FLEET_CHARACTERS": "/etc/fleet/tools/characters.toml",
        "FLEET_SERIALS_FILE": "/etc/fleet/serials/serials",
    }
    example = (DEPLOY / ".env.example").read_text()
    assert all(f"#{name}={path}\n" in example for name, path in files.items())
    found = services(tmp_path, **files, file=DEPLOY / "compose.yaml")
    told = {name: set(found[name]["environment"]) & set(files) for name in ROLES}
    tools = {"FLEET_MCP_SERVERS", "FLEET_CHARACTERS"}
    assert told == {"worker": tools, "gateway": tools, "api": {"FLEET_SERIALS_FILE"}, "edge": set(), "control": set()}
    for name in ROLES:
        mounted = {volume["target"]: volume for volume in found[name].get("volumes", [])}
        for variable in told[name]:
            assert mounted[str(Path(files[variable]).parent)]["read_only"] is True
    tokens = Path(found["api"]["environment"]["FLEET_OPERATOR_TOKENS_FILE"])
    (volume,) = [one for one in found["api"]["volumes"] if one["target"] == str(tokens.parent)]
    # `fleet tokens new` writes it in this container.
    assert volume["type"] == "volume" and not volume.get("read_only")


def test_what_a_role_may_write_belongs_to_it(everything: dict[str, Any]) -> None:
    steps = (DEPLOY / "Dockerfile").read_text()
    for name in ROLES:
        for volume in everything[name].get("volumes", []):
            if volume["type"] == "volume" and not volume.get("read_only"):
                assert re.search(rf"install -d -o fleet -g fleet -m \d+ {volume['target']} ", steps), volume["target"]


def test_traces_go_to_the_collector_of_the_profile(tmp_path: Path) -> None:
    assert "#FLEET_OTLP_ENDPOINT=http://otel:4318\n" in (DEPLOY / ".env.example").read_text()
    found = services(tmp_path, "observability", FLEET_OTLP_ENDPOINT="http://otel:4318")
    assert {name for name in found if found[name].get("environment", {}).get("FLEET_OTLP_ENDPOINT")} == ROLES
    for name in ROLES:
        assert set(found[name]["networks"]) & set(found["otel"]["networks"]), name
    receivers = yaml.safe_load((DEPLOY / "otel" / "collector.yaml").read_text())["receivers"]
    assert receivers["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")


def test_any_other_setting_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text((DEPLOY / "compose.yaml").read_text())
    shutil.copytree(DEPLOY / "settings", tmp_path / "settings")
    (tmp_path / "fleet.env").write_text("FLEET_PROMPT=Be short.\nFLEET_SHARDS=8\n")
    found = services(tmp_path, file=file, FLEET_SHARDS="32")
    for name in ROLES:
        assert found[name]["environment"]["FLEET_PROMPT"] == "Be short."
        assert found[name]["environment"]["FLEET_SHARDS"] == "32"
    assert "FLEET_PROMPT" not in found["redis"]["environment"]


def test_no_variable_waits_for_a_value_that_only_one_file_can_give(tmp_path: Path) -> None:
    for name, service in services(tmp_path).items():
        assert None not in (service.get("environment") or {}).values(), name


def test_files_that_are_mounted_exist(everything: dict[str, Any]) -> None:
    made_by_the_operator = {"tls", "firmware", "tools", "serials"}
    for name, service in everything.items():
        for volume in service.get("volumes", []):
            if volume["type"] == "bind" and Path(volume["source"]).name not in made_by_the_operator:
                assert Path(volume["source"]).exists(), name
