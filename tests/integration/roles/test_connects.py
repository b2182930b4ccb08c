"""Devices that say hello in the moment in which they are connected: `fleet up` as a process, behind a front."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.integration.worker.scene import HELLO
from tests.support.fleet_process import fleet_up
from tests.support.front_client import CONNACK, PATIENCE, FrontClient, connect_packet, publish_packet
from tests.support.front_server import LOOPBACK, running_front
from tests.support.mosquitto_server import MosquittoServer
from tests.support.role_site import KEYS, NOWHERE

DEVICES = 4
SETTINGS = {
    "FLEET_KEYS": KEYS,
    "FLEET_PUBLIC_HOST": LOOPBACK,
    "FLEET_RATE_HELLOS": "1000/1000",
    "LLM_BASE_URL": NOWHERE,
    "LLM_MODEL": "none",
    "ASR_BASE_URL": NOWHERE,
    "TTS_BASE_URL": NOWHERE,
}


@dataclass(frozen=True)
class Site:
    ota: str
    port: int
    """Where devices connect."""


@pytest.fixture(params=["embedded", "mosquitto"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    if request.param == "embedded":
        async with _up(tmp_path, **SETTINGS) as (ota, port):
            yield Site(ota, port)
        return
    plain: MosquittoServer = request.getfixturevalue("plain_broker")
    async with (
        running_front(plain.url, CredentialKeys(KEYS)) as front,
        _up(tmp_path, FLEET_MQTT_URL=plain.url, FLEET_MQTT_PUBLIC=f"{LOOPBACK}:{front.port}", **SETTINGS) as (ota, _),
    ):
        yield Site(ota, front.port)


@asynccontextmanager
async def _up(directory: Path, **settings: str) -> AsyncIterator[tuple[str, int]]:
    """Run `fleet up`, without standing in the way of a front in this process."""
    context = fleet_up(directory, forked=True, **settings)
    process = await asyncio.to_thread(context.__enter__)
    try:
        yield process.ota, process.mqtt_port
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


@pytest.mark.parametrize("connects", [8, pytest.param(75, marks=pytest.mark.slow)])
async def test_no_device_that_says_hello_at_once_is_told_to_stop(site: Site, connects: int) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_come_and_go(site, number, connects)) for number in range(DEVICES)]
    stops = sum((task.result() for task in tasks), Counter())
    assert stops == {1: DEVICES * connects}


async def _come_and_go(site: Site, number: int, connects: int) -> Counter[int]:
    """Return how often the device heard how many `tts stop` in a connection; the one that it asked for is one."""
    mac = f"02:00:00:00:ff:{number:02x}"
    access = await _bootstrap(site, mac)
    stops: Counter[int] = Counter()
    for turn in range(connects):
        client = await FrontClient.open(LOOPBACK, site.port)
        hello = publish_packet(up_topic(mac), json.dumps(HELLO).encode())
        connect = connect_packet(access["client_id"], access["username"], access["password"])
        # Every other time the hello is in the broker's hands as soon as the device is.
        await client.send(connect + hello if turn % 2 else connect)
        assert (await client.next(CONNACK)).body[1] == 0
        if not turn % 2:
            await client.send(hello)
        heard = await _until(client, "hello")
        session = heard[-1]["session_id"]
        # Its edge answers this after all that the connection led to.
        await _say(client, mac, {"type": "abort", "session_id": session})
        heard += await _until(client, "tts")
        await _say(client, mac, {"type": "goodbye", "session_id": session} if turn % 3 else {"type": "none"})
        await _say(client, mac, {"type": "listen", "session_id": "marker", "state": "stop"})
        heard += await _until(client, "goodbye")
        assert heard[-1]["session_id"] == "marker"
        stops[sum(message["type"] == "tts" for message in heard)] += 1
        await client.close()
    return stops


async def _bootstrap(site: Site, mac: str) -> dict[str, str]:
    sent = {"Device-Id": mac, "Client-Id": f"7b8f1c44-0000-4000-8000-{mac.replace(':', '')}"}
    sent |= {"User-Agent": "board/2.4.2", "Activation-Version": "1"}
    async with httpx2.AsyncClient(trust_env=False, timeout=240) as web:
        while True:
            answer = await web.post(site.ota, headers=sent, content=b'{"application":{"version":"2.4.2"}}')
            access: dict[str, str] | None = answer.json().get("mqtt")
            if access is not None:
                return access
            # Redis did not answer in time; firmware asks again, too.
            await asyncio.sleep(0.2)


async def _say(client: FrontClient, mac: str, message: dict[str, object]) -> None:
    await client.publish(up_topic(mac), json.dumps(message).encode())


async def _until(client: FrontClient, kind: str) -> list[dict[str, str]]:
    """Return what the device hears up to a message of a type."""
    heard: list[dict[str, str]] = []
    async with asyncio.timeout(PATIENCE):
        while not heard or heard[-1]["type"] != kind:
            heard.append(json.loads((await client.message()).payload))
    return heard
