"""Connections of fleet's own to a broker and to Redis whose certificates a private authority has signed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.session import MqttSession, Reading, tls_context
from fleet.adapters.redis.client import retries
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.tasks import running as running_task
from fleet.roles.front import Front
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import up_topic
from tests.support.certificates import Pki, serial
from tests.support.front_client import FrontClient
from tests.support.front_server import PATIENT, device, watcher
from tests.support.link_session import Recorder, running, until, who
from tests.support.mosquitto_server import MosquittoServer
from tests.support.patience import REDIS, lengthen
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import ServerProcess, accepts, find_program
from tests.support.process import running as running_server
from tests.support.tcp_relay import TcpRelay

MAC = "02:00:00:77:02:01"


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


@pytest.fixture(autouse=True)
async def _nothing_is_left() -> AsyncIterator[None]:
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()
    await FrontClient.discard_all()


@pytest.fixture
def secure_redis(tmp_path: Path, pki: Pki) -> Iterator[int]:
    """The port of a Redis that speaks TLS only."""
    port = free_port()
    options = {"bind": LOOPBACK, "port": 0, "tls-port": port, "tls-cert-file": pki.cert, "tls-key-file": pki.key}
    options |= {"tls-auth-clients": "no", "save": "", "dir": tmp_path}
    command = [find_program("redis-server", "redis-server")]
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with running_server(ServerProcess(command, port, tmp_path / "redis.log")):
        yield port


async def test_session_with_the_broker_is_made_with_the_authority_only(plain_broker: MosquittoServer, pki: Pki) -> None:
    async with TcpRelay(plain_broker.port, pki.server().context) as relay:
        url, recorder = f"mqtts://{LOOPBACK}:{relay.port}", Recorder()
        session = MqttSession(broker_address(url, pki.ca), who("ca-1"), reading=Reading(["ca/+"], recorder))
        async with running(session):
            session.publish("ca/a", b"x")
            await until(lambda: recorder.seen == [b"x"])
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await MqttSession(broker_address(url, None), who("ca-2")).run()


async def test_front_reaches_its_broker_with_the_authority(
    plain_broker: MosquittoServer, pki: Pki, keys: CredentialKeys
) -> None:
    async with TcpRelay(plain_broker.port, pki.server().context) as relay:
        upstream = broker_address(f"mqtts://{LOOPBACK}:{relay.port}", pki.ca)
        front = Front(host=LOOPBACK, port=0, upstream=upstream, keys=keys, limits=PATIENT)
        async with running_task("front", front.run), asyncio.timeout(240):
            await front.started.wait()
            worker = await watcher(plain_broker.port, up_topic(MAC))
            client = await device(front, keys, MAC)
            await client.publish(up_topic(MAC), b"hello")
            assert (await worker.message()).payload == b"hello"


async def test_redis_is_reached_with_the_authority_only(
    secure_redis: int, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"rediss://{LOOPBACK}:{secure_redis}/0"
    with monkeypatch.context() as patch:
        lengthen(patch, REDIS)
        store = await Store.open(url, 16, pki.ca)
        await store.ping()
        await store.close()
    monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.5)
    with pytest.raises(Unavailable, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
        await Store.open(url, 16)


def test_a_file_without_authorities_is_refused_at_the_start(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing")
    with pytest.raises(ConfigError, match="FLEET_TLS_CA"):
        broker_address("mqtts://broker", junk)
    assert broker_address("mqtt://broker", junk).authorities is None


async def test_mosquitto_with_the_plugin_does_tls_itself_and_takes_a_new_certificate(
    tmp_path: Path, keys: CredentialKeys, pki: Pki
) -> None:
    """What docs/tls.md tells operators: listener with certfile and keyfile, SIGHUP after a renewal."""
    server = MosquittoServer(tmp_path, keys)
    port = free_port()
    config = tmp_path / "mosquitto.conf"
    listener = f"\nlistener {port} {LOOPBACK}\ncertfile {pki.cert}\nkeyfile {pki.key}\n"
    config.write_text(config.read_text() + listener)
    with running_server(server):
        await until(lambda: accepts(port))  # it opens one port after the other
        client, first = await _secure_device(port, keys, pki)
        pki.renew()
        server.reload()
        async with asyncio.timeout(240):
            while (await _secure_device(port, keys, pki))[1] == first:
                await asyncio.sleep(0.2)
        await client.ping()
        stranger = FrontClient(*await asyncio.open_connection(LOOPBACK, port, ssl=pki.client))
        FrontClient.opened.append(stranger)
        assert await stranger.connect(MAC, keys.issue("device", MAC).username, "wrong") != 0


async def _secure_device(port: int, keys: CredentialKeys, pki: Pki) -> tuple[FrontClient, bytes]:
    async with asyncio.timeout(240):
        client = FrontClient(*await asyncio.open_connection(LOOPBACK, port, ssl=pki.client))
    FrontClient.opened.append(client)
    mac = f"02:00:00:77:03:{len(FrontClient.opened):02x}"
    mine = keys.issue("device", mac)
    assert await client.connect(mac, mine.username, mine.password) == 0
    return client, serial(client.writer)
