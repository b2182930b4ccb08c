"""Faults planted into the broker of a real site."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.redis.access.revocations import Revocations
from fleet.core.finding import Finding
from fleet.operations.doctor import broker as broker_checks
from fleet.operations.doctor import passwords
from fleet.operations.doctor.broker import Pair
from fleet.operations.doctor.mqtt_probe import MqttProbe
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire.identity import CredentialKeys
from fleet.wire.mqtt.packets import Publish
from tests.support.doctor_run import run_doctor
from tests.support.mosquitto_server import MosquittoServer
from tests.support.ports import LOOPBACK
from tests.support.process import running
from tests.support.redis_store import opened


def miss_messages(patch: pytest.MonkeyPatch) -> None:
    """Let the doctor not wait long for messages that the broker does not deliver, or whose delivery decides nothing."""
    message = MqttProbe.message

    async def soon(probe: MqttProbe, fits: Callable[[Publish], bool], seconds: float = 0.2) -> Publish | None:
        return await message(probe, fits, seconds)

    patch.setattr(MqttProbe, "message", soon)


async def test_a_wrong_secret(settings: dict[str, Any]) -> None:
    found = await run_doctor(settings | {"keys": "site:another-key-than-the-brokers"}, "broker")
    assert list(found.bad) == ["broker.login"], str(found)
    assert "FLEET_KEYS" in found.bad["broker.login"].advice
    assert "plugin_opt_keys_file" in found.bad["broker.login"].advice
    assert found.exit == 1


async def test_the_plugin_is_missing(
    settings: dict[str, Any], plain_broker: MosquittoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    miss_messages(monkeypatch)
    named = {"mqtt_url": plain_broker.url, "mqtt_public": f"{LOOPBACK}:{plain_broker.port}"}
    found = await run_doctor(settings | named, "broker")
    assert {"broker.delivery", "broker.presence", "broker.password", "broker.topics"} <= set(found.bad), str(found)
    advice = found.bad["broker.delivery"].advice
    assert "plugin" in advice and "auto_subscribe" in advice and "fleet front" in advice


async def test_the_broker_does_not_follow_the_list(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "TRIES", 2)
    monkeypatch.setattr(passwords, "_PAUSE_SECONDS", 0.1)
    with running(MosquittoServer(tmp_path, CredentialKeys(settings["keys"]))) as broker:
        named = {"mqtt_url": broker.url, "mqtt_public": f"{LOOPBACK}:{broker.port}"}
        async with opened(settings["redis_url"]) as store:
            await Revocations(store).require_all(1)
            found = await run_doctor(settings | named, "broker")
    assert list(found.bad) == ["broker.revoked"], str(found)
    advice = found.bad["broker.revoked"].advice
    assert "FLEET_REVOCATIONS_FILE" in advice and "plugin_opt_revoked_file" in advice


async def test_the_broker_does_not_upgrade_the_qos(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = broker_checks._kept

    async def look(site: SiteUnderTest, pair: Pair) -> Finding:
        with monkeypatch.context() as patch:
            # It keeps one message back, for which `_kept` waits; all others must come.
            miss_messages(patch)
            return await kept(site, pair)

    monkeypatch.setattr(broker_checks, "_kept", look)
    changed = {"upgrade_outgoing_qos": "false"}
    with running(MosquittoServer(tmp_path, CredentialKeys(settings["keys"]), changed)) as broker:
        named = {"mqtt_url": broker.url, "mqtt_public": f"{LOOPBACK}:{broker.port}"}
        found = await run_doctor(settings | named, "broker")
    assert set(found.bad) == {"broker.qos", "broker.kept"}, str(found)
    assert "upgrade_outgoing_qos true" in found.bad["broker.qos"].advice
