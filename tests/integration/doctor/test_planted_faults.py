"""Faults planted into a real site: each is found, with the advice that names what mends it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from fleet.adapters.speech.vad_silero import SileroVad
from fleet.wire.identity import CredentialKeys
from tests.support.doctor_run import run_doctor, running_roles
from tests.support.mosquitto_server import MosquittoServer
from tests.support.own_certificate import write_certificate
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, find_program, running
from tests.support.redis_server import RedisServer
from tests.support.skewed_clock import skewed


@pytest.mark.usefixtures("unhurried")
async def test_a_healthy_site_has_no_problem(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings, vad):
        found = await run_doctor(settings)
    assert found.exit == 0, str(found)
    assert found["audio.reach"].verdict == "ok"
    # What this machine has, and how busy it is, is not the site's.
    asked = [one for one in found.all if not one.check.startswith(("machine", "certificates", "redis.latency"))]
    assert {one.verdict for one in asked} == {"ok"}, str(found)
    with redis.Redis.from_url(settings["redis_url"], decode_responses=True) as client:
        left = [key for key in client.scan_iter() if "02:d0:c7" in key]
    assert not left, "the doctor's devices are forgotten"


async def test_a_wrong_secret(settings: dict[str, Any]) -> None:
    found = await run_doctor(settings | {"keys": "site:another-key-than-the-brokers"}, "broker")
    assert list(found.bad) == ["broker.login"], str(found)
    assert "FLEET_KEYS" in found.bad["broker.login"].advice
    assert "plugin_opt_keys_file" in found.bad["broker.login"].advice
    assert found.exit == 1


async def test_the_plugin_is_missing(settings: dict[str, Any], plain_broker: MosquittoServer) -> None:
    named = {"mqtt_url": plain_broker.url, "mqtt_public": f"{LOOPBACK}:{plain_broker.port}"}
    found = await run_doctor(settings | named, "broker")
    assert {"broker.delivery", "broker.presence", "broker.password", "broker.topics"} <= set(found.bad), str(found)
    advice = found.bad["broker.delivery"].advice
    assert "plugin" in advice and "auto_subscribe" in advice and "fleet front" in advice


async def test_the_broker_does_not_upgrade_the_qos(settings: dict[str, Any], tmp_path: Path) -> None:
    changed = {"upgrade_outgoing_qos": "false"}
    with running(MosquittoServer(tmp_path, CredentialKeys(settings["keys"]), changed)) as broker:
        named = {"mqtt_url": broker.url, "mqtt_public": f"{LOOPBACK}:{broker.port}"}
        found = await run_doctor(settings | named, "broker")
    assert set(found.bad) == {"broker.qos", "broker.kept"}, str(found)
    assert "upgrade_outgoing_qos true" in found.bad["broker.qos"].advice


async def test_redis_throws_keys_away(settings: dict[str, Any], site_redis: RedisServer) -> None:
    with redis.Redis.from_url(site_redis.url) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            found = await run_doctor(settings, "redis")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", "0")
    assert list(found.bad) == ["redis.eviction"], str(found)
    assert "maxmemory-policy noeviction" in found.bad["redis.eviction"].advice


async def test_udp_is_blocked(settings: dict[str, Any], vad: SileroVad) -> None:
    with _blocked() as port:
        async with running_roles(settings, vad, udp=(LOOPBACK, port)):
            found = await run_doctor(settings, "session")
    assert list(found.bad) == ["audio.reach"], str(found)
    assert "firewall" in found.bad["audio.reach"].advice
    assert f"the edge itself answers at {LOOPBACK}:{settings['udp_port']}" in found.bad["audio.reach"].message


async def test_the_public_address_is_wrong(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings, vad, udp=(LOOPBACK, free_port(socket.SOCK_DGRAM))):
        found = await run_doctor(settings, "session")
    assert list(found.bad) == ["audio.address"], str(found)
    assert "FLEET_UDP_PUBLIC" in found.bad["audio.address"].advice


async def test_the_address_for_devices_leads_nowhere(settings: dict[str, Any]) -> None:
    found = await run_doctor(settings | {"mqtt_public": f"{LOOPBACK}:{free_port()}"}, "broker")
    assert list(found.bad) == ["broker.door"], str(found)
    assert "FLEET_MQTT_PUBLIC" in found.bad["broker.door"].advice


@pytest.mark.parametrize(("part", "check"), [("llm", "models.llm"), ("speech", "models.asr"), ("speech", "models.tts")])
async def test_a_model_is_down(settings: dict[str, Any], part: str, check: str) -> None:
    kind = check.removeprefix("models.")
    found = await run_doctor(settings | {f"{kind}_base_url": f"http://{LOOPBACK}:{free_port()}/v1"}, part)
    assert list(found.bad) == [check], str(found)
    assert f"{kind.upper()}_BASE_URL" in found.bad[check].advice


async def test_the_certificate_has_expired(settings: dict[str, Any], tmp_path: Path) -> None:
    pair = write_certificate(tmp_path, LOOPBACK, datetime.now(UTC) - timedelta(days=2))
    found = await run_doctor(settings | pair, "certificates")
    assert list(found.bad) == ["certificates.time"], str(found)
    advice = found.bad["certificates.time"].advice
    assert "Renew" in advice and "FLEET_TLS_CERT" in advice


async def test_the_clock_is_wrong(settings: dict[str, Any], tmp_path: Path) -> None:
    port = free_port()
    program = [find_program("redis-server", "redis-server"), "--bind", LOOPBACK, "--port", str(port), "--save", ""]
    with running(ServerProcess(program, port, tmp_path / "log", skewed(600))):
        found = await run_doctor(settings | {"redis_url": f"redis://{LOOPBACK}:{port}/0"}, "clock")
    assert list(found.bad) == ["clock.redis"], str(found)
    assert "600" in found.bad["clock.redis"].message and "ahead" in found.bad["clock.redis"].message
    assert "chrony" in found.bad["clock.redis"].advice


async def test_the_functions_are_old(settings: dict[str, Any], site_redis: RedisServer) -> None:
    old = "#!lua name=fleet\nredis.register_function('fleet_hello', function(K, A) return {'', '', '', ''} end)\n"
    with redis.Redis.from_url(site_redis.url) as client:
        client.function_flush()
        client.function_load(old)
        found = await run_doctor(settings, "redis")
        assert list(found.bad) == ["redis.functions"], str(found)
        assert "restart one worker of this version" in found.bad["redis.functions"].advice
        assert len(client.function_list(library="fleet")) == 1, "looking changes nothing"


@contextmanager
def _blocked() -> Iterator[int]:
    """Give a UDP port that takes everything and answers nothing, as a firewall that drops."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
        hole.bind((LOOPBACK, free_port(socket.SOCK_DGRAM)))
        yield hole.getsockname()[1]
