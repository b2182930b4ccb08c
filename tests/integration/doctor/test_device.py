"""Why a device is silent, on a real site; a doctor who is where the devices are; one device looked at closely."""

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.debugging import DebuggedDevices
from fleet.adapters.redis.devices.view import DeviceView, read_device_view
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.finding import Finding
from fleet.ground import log
from fleet.ground.settings import load
from fleet.operations.doctor.mqtt_probe import MqttProbe
from fleet.operations.doctor.remote import examine_remote
from fleet.roles.control.doctor.device import SiteTerms, examine_device
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.doctor_run import Findings, run_doctor, running_roles

MAC, OTHER = "02:00:00:00:0d:0c", "02:00:00:00:0d:0d"
LIMIT = 240
TERMS = SiteTerms("first")
HELLO = {"type": "hello", "version": 3, "transport": "udp"}


@pytest.fixture
async def store(settings: dict[str, Any]) -> AsyncIterator[Store]:
    opened = await Store.open(settings["redis_url"], load(**settings).shards)
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def device(settings: dict[str, Any], mac: str) -> AsyncIterator[Callable[[dict[str, Any]], Any]]:
    """Connect a device; give what sends its messages."""
    address = broker_address(settings["mqtt_url"], load(**settings).tls_ca)
    # An older password is refused once the workers have said so.
    who = CredentialKeys(settings["keys"]).issue("device", mac, policy="first", generation=1)
    async with MqttProbe.to(address, who) as line:
        yield lambda message: line.publish(up_topic(mac), json.dumps(message).encode())


async def until(store: Store, holds: Callable[[DeviceView], object], mac: str = MAC) -> DeviceView:
    async with asyncio.timeout(LIMIT):
        while not holds(known := await read_device_view(store, mac)):
            await asyncio.sleep(0.02)
    return known


async def judged(store: Store, settings: dict[str, Any]) -> dict[str, Finding]:
    return {one.check: one for one in await examine_device(store, MAC, TERMS)}


async def test_a_device_is_followed_on_its_way(settings: dict[str, Any], store: Store, vad: SileroVad) -> None:
    async with running_roles(settings, vad):
        assert (await judged(store, settings))["device.bootstrap"].verdict == "problem"
        async with device(settings, MAC) as say:
            await until(store, lambda known: known.record.get("on") == "1")
            assert (await judged(store, settings))["device.hello"].verdict == "problem"
            await say(HELLO)
            known = await until(store, lambda known: known.at("hello"))
            await say({"type": "goodbye", "session_id": known.last_session})
            await until(store, lambda known: known.at("end") and known.at("goodbye"))
        known = await until(store, lambda known: known.record.get("on") == "0")
        found = await judged(store, settings)
    assert known.traces["goodbye"].words == "device"
    assert known.traces["end"].words.split() == [known.last_session, "0", "0"]
    assert found["device.presence"].verdict == found["device.hello"].verdict == "ok", "it hung up in order"


async def test_without_an_edge_the_refusal_and_its_reason_are_found(settings: dict[str, Any], vad: SileroVad) -> None:
    async with running_roles(settings, vad) as edge:
        edge.draining = True
        async with asyncio.timeout(LIMIT):
            # Edges announce themselves once a second, and workers look as often.
            while (
                "no edge is ready"
                not in (found := await run_doctor(settings, "session", "roles"))["session.hello"].message
            ):
                assert found["session.hello"].verdict == "ok"
    assert "fleet edge" in found["session.hello"].advice
    assert found["roles.edges"].verdict == "problem"


async def test_from_outside_a_url_is_enough(settings: dict[str, Any], store: Store, vad: SileroVad) -> None:
    async with running_roles(settings, vad):
        await Revocations(store).require_all(1)  # the workers do the same, soon
        found = await outside(settings)
    assert [one.check for one in found.all] == [
        *("api.reach", "clock.api", "api.bootstrap", "session.login", "session.hello", "audio.reach")
    ]
    assert {one.verdict for one in found.all} == {"ok"}, str(found)


async def test_where_devices_must_be_bound_the_doctor_binds_its_own(settings: dict[str, Any], vad: SileroVad) -> None:
    strict = settings | {"activation": "closed"}
    async with running_roles(strict, vad):
        found, stranger = await run_doctor(strict, "api", "session"), await outside(settings)
    assert found.exit == 0, str(found)
    assert "run `fleet doctor` on the server" in stranger.bad["api.bootstrap"].advice


async def outside(settings: dict[str, Any]) -> Findings:
    bare = load(data_dir=settings["data_dir"])
    return Findings(await examine_remote(bare, f"{settings['http_public']}/xiaozhi/ota/"))


async def test_one_device_is_looked_at_closely(settings: dict[str, Any], store: Store, vad: SileroVad) -> None:
    stream, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.configure("info", "json", pii=False, stream=stream)
    try:
        async with running_roles(settings, vad):
            await DebuggedDevices(store).set(MAC, 60)
            async with asyncio.timeout(LIMIT):
                while not logging.getLogger("fleet.roles.worker.ownership.shard").isEnabledFor(logging.DEBUG):
                    await asyncio.sleep(0.02)
            for mac in (MAC, OTHER):
                async with device(settings, mac) as say:
                    await say(HELLO)
                    await until(store, lambda known: known.at("hello"), mac)
        assert not logging.getLogger("fleet.roles.worker.ownership.shard").isEnabledFor(logging.DEBUG)
    finally:
        root.handlers[0].flush()
        root.handlers[:], root.level = handlers, level
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    close = [line for line in lines if line["level"] == "debug"]
    assert {line.get("device") for line in close} == {MAC}
    assert {"message", "command"} <= {line["message"] for line in close}
    assert OTHER in {line.get("device") for line in lines}
