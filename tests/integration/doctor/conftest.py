"""A broker, a Redis that keeps its data and models that answer; the roles are started by each test."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from fleet.adapters.redis import keys
from fleet.adapters.redis.devices import forgetting
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.operations.doctor import audio, examination, passwords
from fleet.wire.identity import CredentialKeys
from tests.support.mosquitto_server import MosquittoServer
from tests.support.openai_server import Answer, run_openai_server, spoken
from tests.support.patience import REDIS, lengthen
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import running
from tests.support.redis_server import RedisServer

KEYS = "site:a-key-for-the-doctor-1"
LONG = 240.0
WAITS = (
    "fleet.adapters.speech.turn_smart.TIMEOUT",
    "fleet.operations.doctor.api.SECONDS",
    "fleet.operations.doctor.certificates._SECONDS",
    "fleet.operations.doctor.examination._TIDY_SECONDS",
    "fleet.operations.doctor.mqtt_probe.ANSWER_SECONDS",
    "fleet.operations.doctor.mqtt_probe.CONNECT_SECONDS",
    "fleet.operations.doctor.session.HELLO_SECONDS",
    "fleet.operations.doctor.site._BOOTSTRAP_SECONDS",
    "fleet.roles.api.bootstrap.STORE_SECONDS",
    "fleet.run.start_check._SECONDS",
    "fleet.run.worker.READY_SECONDS",
)
PCM = bytes(range(1, 255)) * 200


@pytest.fixture(scope="session")
def models() -> Iterator[str]:
    with run_openai_server() as server:
        server.chat(spoken("Hello."))
        server.transcriptions(Answer([json.dumps({"text": "Good morning."}).encode()]))
        server.speech(Answer([PCM], kind="audio/pcm"))
        yield server.url


@pytest.fixture(scope="session")
def vad() -> SileroVad:
    return SileroVad.load(None)


@pytest.fixture(scope="session")
def site_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MosquittoServer]:
    with running(MosquittoServer(tmp_path_factory.mktemp("broker"), CredentialKeys(KEYS))) as server:
        yield server


@pytest.fixture(scope="session")
def site_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path_factory.mktemp("redis"), durable=True)) as server:
        yield server


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everybody wait longer for what comes: how soon a busy machine answers says nothing about the site.

    A test of a fault that keeps something back limits the wait for it anew.
    """
    lengthen(monkeypatch, (*REDIS, *WAITS), LONG)
    monkeypatch.setattr(passwords, "TRIES", round(LONG))
    monkeypatch.setattr(audio, "TRIES", round(LONG / audio.TRY_SECONDS))
    parts = {name: (part, 4 * LONG) for name, (part, _) in examination.PARTS.items()}
    monkeypatch.setattr(examination, "PARTS", parts)
    monkeypatch.setattr(keys, "EDGE_SECONDS", round(LONG))
    # What workers still note of the doctor's devices concerns only a test that is `unhurried`.
    monkeypatch.setattr(forgetting, "_SETTLED_SECONDS", 0.0)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the doctor wait longer until the workers have noted all that they will forget."""
    lengthen(monkeypatch, ("fleet.adapters.redis.devices.forgetting._SETTLED_SECONDS",), LONG)
    lengthen(monkeypatch, ("fleet.adapters.redis.devices.forgetting._UNKNOWN_SECONDS",), LONG)


@pytest.fixture
def settings(site_broker: MosquittoServer, site_redis: RedisServer, models: str, tmp_path: Path) -> dict[str, Any]:
    """What the roles and the operator have in their environment, with a Redis that holds nothing."""
    with redis.Redis.from_url(site_redis.url) as client:
        client.flushall()
    http = free_port()
    return {
        "keys": KEYS,
        "mqtt_url": site_broker.url,
        "redis_url": site_redis.url,
        "public_host": LOOPBACK,
        "mqtt_public": f"{LOOPBACK}:{site_broker.port}",
        "http_host": LOOPBACK,
        "http_port": http,
        "http_public": f"http://{LOOPBACK}:{http}",
        "revocations_file": site_broker.directory / "revoked",
        "udp_host": LOOPBACK,
        "udp_port": free_port(socket.SOCK_DGRAM),
        "data_dir": tmp_path / "nothing-runs-here",
        "llm_base_url": models,
        "asr_base_url": models,
        "tts_base_url": models,
        "lease_seconds": LONG,
        "llm_timeout": 2 * LONG,
        "llm_silence_seconds": LONG,
        "asr_timeout": LONG,
        "tts_timeout": LONG,
    }
