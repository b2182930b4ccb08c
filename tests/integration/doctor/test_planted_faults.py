"""Faults planted into a real site: each is found, with the advice that names what mends it."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.retries import RetryPolicy
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.operations.doctor import audio, disk
from fleet.operations.doctor.hello_answer import HelloAnswer
from tests.support.doctor_run import run_doctor, running_roles
from tests.support.openai_server import Answer, run_openai_server, spoken
from tests.support.own_certificate import write_certificate
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, find_program, running
from tests.support.redis_server import RedisServer
from tests.support.redis_store import opened
from tests.support.skewed_clock import skewed
from tests.support.until import until


@pytest.mark.usefixtures("unhurried")
async def test_a_healthy_site_has_no_problem(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings, vad), opened(settings["redis_url"]) as store:
        await Revocations(store).require_all(1)  # the workers do the same, soon
        found = await run_doctor(settings)
    assert found.exit == 0, str(found)
    assert found["audio.reach"].verdict == "ok"
    # What this machine has, and how busy it is, is not the site's.
    asked = [one for one in found.all if not one.check.startswith(("machine", "certificates", "redis.latency"))]
    assert {one.verdict for one in asked} == {"ok"}, str(found)
    with redis.Redis.from_url(settings["redis_url"], decode_responses=True) as client:
        left = [key for key in client.scan_iter() if "02:d0:c7" in key]
    assert not left, "the doctor's devices are forgotten"


async def test_the_doctor_leaves_no_code_that_somebody_could_accept(settings: dict[str, Any], vad: SileroVad) -> None:
    settings["activation"] = "code"
    async with running_roles(settings, vad), opened(settings["redis_url"]) as store:
        found = await run_doctor(settings, "api")
        assert await Activations(store).codes() == []
    assert found["api.bootstrap"].verdict == "ok", "it was bound"


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


@pytest.mark.parametrize(
    ("changed", "check", "advice"),
    [
        ({"maxmemory": "1kb"}, "redis.memory", "Raise maxmemory"),
        ({"min-replicas-to-write": "1"}, "redis.writes", "start its replicas"),
        ({"save": "900 1"}, "redis.writes", "free space in its folder"),
    ],
)
async def test_redis_takes_no_writes(
    settings: dict[str, Any], own_redis: redis.Redis, tmp_path: Path, changed: dict[str, str], check: str, advice: str
) -> None:
    for name, value in changed.items():
        own_redis.config_set(name, value)
    if "save" in changed:
        own_redis.set("any", "thing")
        (tmp_path / "data").rmdir()
        own_redis.bgsave()
        until(lambda: own_redis.info("persistence")["rdb_last_bgsave_status"] != "ok")
    found = await run_doctor(settings | {"redis_url": _url_of(own_redis)}, "redis")
    assert check in found.bad and "redis.writes" in found.bad, str(found)
    assert advice in found.bad[check].advice and advice in found.bad["redis.writes"].advice
    assert set(found.bad) <= {check, "redis.writes", "redis.persistence"}, str(found)


async def test_redis_is_a_replica(settings: dict[str, Any], own_redis: redis.Redis, site_redis: RedisServer) -> None:
    own_redis.replicaof(LOOPBACK, site_redis.port)
    found = await run_doctor(settings | {"redis_url": _url_of(own_redis)}, "redis")
    assert "redis.role" in found.bad and "primary" in found.bad["redis.role"].advice, str(found)


async def test_a_disk_is_full(settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_FULL", shutil.disk_usage(tmp_path).total)
    found = await run_doctor(settings | {"data_dir": tmp_path}, "redis", "machine")
    for check in ("redis.disk", "machine.disk"):
        assert "the disk is full" in found.bad[check].message and "df -h" in found.bad[check].advice, str(found)


def test_a_limit_on_files_is_low(settings: dict[str, Any], tmp_path: Path) -> None:
    """That of the `fleet up` that runs counts, not that of the doctor."""
    shell = ["/bin/sh", "-c", "ulimit -n 100; echo; read _"]
    low = subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert low.stdin and low.stdout
    with low:
        low.stdout.readline()
        state = {"redis_url": settings["redis_url"], "mqtt_url": settings["mqtt_url"], "pid": low.pid}
        (tmp_path / "running.json").write_text(json.dumps(state))
        found = asyncio.run(run_doctor(settings | {"data_dir": tmp_path}, "machine", "settings"))
        low.stdin.close()
    assert found["machine.files"].verdict == "warning", str(found)
    assert f"process {low.pid}" in found["machine.files"].message and "100 files" in found["machine.files"].message
    assert "LimitNOFILE" in found["machine.files"].advice
    assert f"process {low.pid}" in found["settings.source"].message


async def test_a_public_name_is_unknown(settings: dict[str, Any]) -> None:
    unknown = {"public_host": "no-such-host.invalid", "mqtt_public": None, "http_public": None}
    found = await run_doctor(settings | unknown, "settings")
    assert list(found.bad) == ["settings.names"], str(found)
    assert found.bad["settings.names"].message.startswith("FLEET_PUBLIC_HOST: no-such-host.invalid cannot be resolved")
    assert "DNS" in found.bad["settings.names"].advice
    assert "settings of this command" in found["settings.source"].message


async def test_udp_is_blocked(settings: dict[str, Any], vad: SileroVad, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, many = audio.ask, audio.TRIES
    with _blocked() as port:

        async def ask_the_blocked_one_less(address: str, asked: int, hello_answer: HelloAnswer) -> bool | None:
            monkeypatch.setattr(audio, "TRIES", 1 if asked == port else many)
            return await ask(address, asked, hello_answer)

        monkeypatch.setattr(audio, "ask", ask_the_blocked_one_less)
        async with running_roles(settings, vad, udp=(LOOPBACK, port)):
            found = await run_doctor(settings, "session")
    assert list(found.bad) == ["audio.reach"], str(found)
    assert "firewall" in found.bad["audio.reach"].advice
    assert f"the edge itself answers at {LOOPBACK}:{settings['udp_port']}" in found.bad["audio.reach"].message


async def test_two_edges_have_one_address(settings: dict[str, Any]) -> None:
    async with opened(settings["redis_url"]) as store:
        for name in ("one", "two"):
            await Edges(store).announce(EdgeRecord(name, "192.0.2.9", 8884, 0))
        found = await run_doctor(settings, "roles")
    assert set(found.bad) == {"roles.workers", "roles.edges"}, str(found)
    assert "192.0.2.9:8884" in found.bad["roles.edges"].message
    assert "FLEET_UDP_PUBLIC" in found.bad["roles.edges"].advice


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


@pytest.mark.parametrize(
    ("prefix", "part", "check"),
    [
        ("LLM", "llm", "models.llm"),
        ("LLM_FALLBACK", "llm", "models.fallback"),
        ("VISION", "llm", "models.vision"),
        ("ASR", "speech", "models.asr"),
        ("TTS", "speech", "models.tts"),
    ],
)
async def test_a_model_is_set_wrong(settings: dict[str, Any], prefix: str, part: str, check: str) -> None:
    name = prefix.lower()
    with run_openai_server() as server:
        named = settings | {f"{name}_base_url": server.url, f"{name}_model": "the-model"}
        server.models("one-model", "the-model-2")
        found = await run_doctor(named, part)
        assert list(found.bad) == [check], str(found)
        assert "does not list the model the-model" in found.bad[check].message
        assert found.bad[check].advice.startswith(f"Set {prefix}_MODEL to a model of the endpoint, such as the-model-2")
        server.script("models", Answer([b"{}"], status=401))
        found = await run_doctor(named | {f"{name}_api_key": "wrong"}, part)
    assert list(found.bad) == [check] and "refused the key" in found.bad[check].message, str(found)
    assert f"orrect {prefix}_API_KEY" in found.bad[check].advice
    found = await run_doctor(settings | {f"{name}_base_url": "http://no-such-host.invalid/v1"}, part)
    assert list(found.bad) == [check] and "no-such-host.invalid" in found.bad[check].message, str(found)
    assert f"orrect {prefix}_BASE_URL" in found.bad[check].advice


async def test_a_model_that_answers_need_not_be_listed(settings: dict[str, Any]) -> None:
    with run_openai_server() as server:
        server.models("one-model", "the-model-2")
        server.chat(spoken("Hello"))
        found = await run_doctor(settings | {"llm_base_url": server.url, "llm_model": "the-model"}, "llm")
    assert found["models.llm"].verdict == "ok" and not found.bad, str(found)


async def test_the_turn_model_judges_and_a_broken_one_is_found(settings: dict[str, Any], tmp_path: Path) -> None:
    found = await run_doctor(settings, "speech")
    assert found["models.turn"].verdict == "ok", str(found)
    (tmp_path / "smart-turn-v3.2-cpu.onnx").write_bytes(b"no model")
    found = await run_doctor(settings | {"model_dir": tmp_path}, "speech")
    assert found["models.turn"].verdict == "warning", str(found)


async def test_the_photo_model_answers(settings: dict[str, Any], models: str) -> None:
    found = await run_doctor(settings | {"vision_base_url": models}, "llm")
    assert found["models.vision"].verdict == "ok" and not found.bad, str(found)


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
    told = re.search(r"the clock of Redis is (\d+\.\d) s ahead of", found.bad["clock.redis"].message)
    assert told is not None and float(told[1]) == pytest.approx(600, abs=60), "as well as a busy machine can tell"
    assert "chrony" in found.bad["clock.redis"].advice


async def test_the_clock_of_the_api_is_wrong(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings, vad):
        found = await run_doctor(settings, "clock", now=lambda: datetime.now(UTC) - timedelta(hours=1))
    assert {"clock.api", "clock.redis", "clock.own"} == set(found.bad), str(found)
    assert "ahead" in found.bad["clock.api"].message and "chrony" in found.bad["clock.own"].advice


async def test_the_time_zone_of_the_api_is_another(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings | {"timezone": "Asia/Tokyo"}, vad):
        found = await run_doctor(settings | {"timezone": "Asia/Kolkata"}, "clock")
    assert list(found.bad) == ["clock.zone"], str(found)
    assert "UTC+9 h" in found.bad["clock.zone"].message and "Asia/Kolkata" in found.bad["clock.zone"].message
    assert "FLEET_TIMEZONE" in found.bad["clock.zone"].advice


async def test_the_functions_are_old(settings: dict[str, Any], site_redis: RedisServer) -> None:
    old = "#!lua name=fleet\nredis.register_function('fleet_hello', function(K, A) return {'', '', '', ''} end)\n"
    with redis.Redis.from_url(site_redis.url) as client:
        client.function_flush()
        client.function_load(old)
        found = await run_doctor(settings, "redis")
        assert list(found.bad) == ["redis.functions"], str(found)
        assert "restart one worker of this version" in found.bad["redis.functions"].advice
        assert len(client.function_list(library="fleet")) == 1, "looking changes nothing"


@pytest.fixture
def own_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[redis.Redis]:
    """A Redis that the test may spoil; who is refused asks again for a moment only, as it stays spoiled."""
    again = RetryPolicy._again

    async def not_for_long(policy: RetryPolicy, once: Any, error: BaseException, deadline: float) -> Any:
        refused = isinstance(error, redis.ResponseError)
        return await again(policy, once, error, asyncio.get_running_loop().time() + 0.2 if refused else deadline)

    monkeypatch.setattr(RetryPolicy, "_again", not_for_long)
    (tmp_path / "data").mkdir()
    port, place = free_port(), ["--bind", LOOPBACK, "--save", "", "--dir", str(tmp_path / "data")]
    program = [find_program("redis-server", "redis-server"), "--port", str(port), *place]
    with (
        running(ServerProcess(program, port, tmp_path / "log")) as server,
        redis.Redis(LOOPBACK, port, decode_responses=True) as own,
    ):
        yield own
        server.kill()  # one that cannot save does not end when it is asked to


def _url_of(client: redis.Redis) -> str:
    return f"redis://{LOOPBACK}:{client.get_connection_kwargs()['port']}/0"


@contextmanager
def _blocked() -> Iterator[int]:
    """Give a UDP port that takes everything and answers nothing, as a firewall that drops."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hole:
        hole.bind((LOOPBACK, free_port(socket.SOCK_DGRAM)))
        yield hole.getsockname()[1]
