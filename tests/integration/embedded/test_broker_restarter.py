"""The embedded broker keeps something of every device for ever: what bounds it, with a real broker and a real front."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.ground.tasks import running
from fleet.roles.front.limits import FrontLimits
from fleet.run.embedded import broker_restarter as module
from fleet.run.embedded.broker import EmbeddedBroker
from fleet.run.embedded.broker_restarter import BrokerRestarter
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.front_client import FrontClient
from tests.support.front_server import LOOPBACK, device, running_front, watcher

UNAVAILABLE = 3
"""CONNACK: the device comes again."""


@pytest.fixture(autouse=True)
async def _no_connection_left() -> AsyncIterator[None]:
    yield
    await FrontClient.discard_all()


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[EmbeddedBroker]:
    server = EmbeddedBroker(tmp_path)
    await server.start()
    yield server
    await server.stop()


def mac(number: int) -> str:
    return f"0a:00:00:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


async def refused(port: int, keys: CredentialKeys, who: str) -> bool:
    client = await FrontClient.open(LOOPBACK, port)
    login = keys.issue("device", who)
    return await client.connect(who, login.username, login.password) == UNAVAILABLE


async def test_beyond_the_bound_new_devices_are_refused_and_known_ones_served(
    broker: EmbeddedBroker, keys: CredentialKeys
) -> None:
    async with running_front(broker.url, keys, FrontLimits(devices=20)) as front:
        for number in range(20):
            (await device(front, keys, mac(number))).abort()
        restarter = BrokerRestarter(broker, lambda: front.admission.admitted, lambda: True, front.admission.reset)
        before = restarter.memory
        for number in range(20, 520):
            assert await refused(front.port, keys, mac(number))
        assert restarter.memory - before < 2 * 1024 * 1024
        assert front.counts["too many devices"] == 500
        assert front.admission.admitted == 20
        await device(front, keys, mac(7))


async def test_a_full_broker_restarts_on_the_same_port_and_devices_come_back(
    broker: EmbeddedBroker, keys: CredentialKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(module, "MOST_DEVICES", 20)
    port, pid = broker.port, broker.pid
    async with running("broker", broker.run), running_front(broker.url, keys, FrontLimits(devices=20)) as front:
        restarter = BrokerRestarter(broker, lambda: front.admission.admitted, lambda: False, front.admission.reset)
        clients = [await device(front, keys, mac(number)) for number in range(19)]
        assert not restarter.is_due()
        clients.append(await device(front, keys, mac(19)))
        async with running("restarter", restarter.run):
            for client in clients:
                await client.closed()
            async with asyncio.timeout(240):
                while front.admission.admitted or broker.pid in (pid, None):
                    await asyncio.sleep(0.02)
        assert broker.port == port
        reader = await watcher(port, "fleet/up/#")
        back = await device(front, keys, mac(1000))
        await back.publish(up_topic(mac(1000)), b"back")
        assert (await reader.message()).payload == b"back"


def test_half_full_is_due_when_no_device_has_a_session(tmp_path: Path) -> None:
    devices_seen, idle = [0], [False]
    restarter = BrokerRestarter(EmbeddedBroker(tmp_path), lambda: devices_seen[0], lambda: idle[0], lambda: None)
    for devices, is_idle, due in (
        (module.MOST_DEVICES // 2, False, False),
        (module.MOST_DEVICES // 2 - 1, True, False),
        (module.MOST_DEVICES // 2, True, True),
        (module.MOST_DEVICES, False, True),
    ):
        devices_seen[0], idle[0] = devices, is_idle
        assert restarter.is_due() is due
