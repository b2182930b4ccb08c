"""Devices that come to the front through TLS."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from fleet.ground.errors import ConfigError
from fleet.roles.front import Front, FrontLimits
from fleet.roles.front.listeners import TlsBinding
from fleet.wire.identity import CredentialKeys
from fleet.wire.topics import down_topic, up_topic
from tests.support.certificates import Pki, serial
from tests.support.front_client import FrontClient, connect_packet
from tests.support.front_server import LOOPBACK, PATIENT, device, watcher
from tests.support.mosquitto_server import MosquittoServer

MAC, OTHER = "02:00:00:77:00:01", "02:00:00:77:00:02"


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


@asynccontextmanager
async def secure_front(
    upstream: str, keys: CredentialKeys, pki: Pki, limits: FrontLimits | None = None
) -> AsyncIterator[Front]:
    """Run a front with both listeners and a certificate that is followed."""
    shown = pki.server()
    secure = TlsBinding(LOOPBACK, 0, shown)
    front = Front(host=LOOPBACK, port=0, upstream=upstream, keys=keys, limits=limits or PATIENT, secure=secure)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(front.run()), group.create_task(shown.run())]
        async with asyncio.timeout(240):
            await front.started.wait()
        yield front
        for task in tasks:
            task.cancel()


@pytest.fixture
async def front(plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki) -> AsyncIterator[Front]:
    async with secure_front(plain_broker.url, keys, pki) as server:
        yield server


async def connect(front: Front, trust: ssl.SSLContext) -> FrontClient:
    """Return a client whose handshake is done."""
    async with asyncio.timeout(240):
        streams = await asyncio.open_connection(LOOPBACK, front.tls_port, ssl=trust)
    client = FrontClient(*streams)
    FrontClient.opened.append(client)
    return client


async def secure_device(front: Front, keys: CredentialKeys, mac: str, trust: ssl.SSLContext) -> FrontClient:
    client = await connect(front, trust)
    mine = keys.issue("device", mac)
    assert await client.connect(mac, mine.username, mine.password) == 0
    return client


async def until(holds: Callable[[], bool], seconds: float = 240) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


async def exchange(front: Front, broker: MosquittoServer, keys: CredentialKeys, trust: ssl.SSLContext) -> None:
    """Let a device with TLS and one without speak both ways, and a stranger be refused."""
    worker = await watcher(broker.port, up_topic(MAC), up_topic(OTHER))
    for mac, client in (
        (MAC, await secure_device(front, keys, MAC, trust)),
        (OTHER, await device(front, keys, OTHER)),
    ):
        await client.publish(up_topic(mac), b"x" * 60_000)
        assert (await worker.message()).payload == b"x" * 60_000
        await worker.publish(down_topic(mac), b"hello", qos=1)
        await worker.receive()
        assert (await client.message()).payload == b"hello"
        await client.ping()
    stranger = await connect(front, trust)
    assert await stranger.connect(MAC, "device.new", "wrong") == 5
    await stranger.closed()


async def test_devices_with_and_without_tls_are_served_alike(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki
) -> None:
    await exchange(front, plain_broker, keys, pki.client)


def test_the_same_on_the_loop_that_servers_run_on(
    plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki
) -> None:
    async def main() -> None:
        async with secure_front(plain_broker.url, keys, pki) as front:
            await exchange(front, plain_broker, keys, pki.client)
        async with secure_front(plain_broker.url, keys, pki, FrontLimits(connect=0.5)) as front:
            mute = await FrontClient.open(LOOPBACK, front.tls_port or 0)
            await mute.closed()
            assert front.counts["tls"] == 1
            await FrontClient.discard_all()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


async def test_login_in_the_same_segment_as_the_end_of_the_handshake_is_not_lost(
    front: Front, keys: CredentialKeys, pki: Pki
) -> None:
    """A board writes its CONNECT right after its Finished; both may arrive at once."""
    mine = keys.issue("device", MAC)
    inward, outward = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = pki.client.wrap_bio(inward, outward, server_hostname=LOOPBACK)
    raw = await FrontClient.open(LOOPBACK, front.port if front.tls_port is None else front.tls_port)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            await raw.send(outward.read())
            async with asyncio.timeout(240):
                inward.write(await raw.reader.read(65536))
            continue
        break
    tls.write(connect_packet(MAC, mine.username, mine.password))
    await raw.send(outward.read())
    answer = b""
    async with asyncio.timeout(240):
        while len(answer) < 4:
            try:
                answer += tls.read(4)
            except ssl.SSLWantReadError:
                inward.write(await raw.reader.read(65536))
    assert answer == bytes((0x20, 2, 0, 0))


async def test_new_certificate_is_shown_while_a_device_stays_connected(
    front: Front, plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki
) -> None:
    worker = await watcher(plain_broker.port)
    before = await secure_device(front, keys, MAC, pki.client)
    pki.renew()
    wanted = ssl.PEM_cert_to_DER_cert(pki.cert.read_text())

    async def renewed() -> FrontClient:
        while True:
            client = await connect(front, pki.client)
            if serial(client.writer) == wanted:
                return client
            client.abort()
            await asyncio.sleep(0.1)

    async with asyncio.timeout(240):
        after = await renewed()
    mine = keys.issue("device", OTHER)
    assert await after.connect(OTHER, mine.username, mine.password) == 0
    assert serial(before.writer) != wanted
    for mac, client in ((MAC, before), (OTHER, after)):
        await worker.publish(down_topic(mac), b"still here")
        assert (await client.message()).payload == b"still here"
    assert set(front.counts) <= {"lost"}


async def test_who_trusts_another_authority_does_not_come_in(front: Front, pki: Pki, tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await connect(front, Pki(tmp_path / "other").client)
    with pytest.raises(ssl.SSLCertVerificationError):
        await connect(front, ssl.create_default_context())
    await until(lambda: front.connections == 0)


async def test_certificate_for_another_name_is_refused(
    plain_broker: MosquittoServer, keys: CredentialKeys, tmp_path: Path
) -> None:
    pki = Pki(tmp_path / "elsewhere", "voice.example")
    async with secure_front(plain_broker.url, keys, pki) as front:
        with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
            await connect(front, pki.client)


async def test_a_handshake_that_never_ends_is_ended(
    plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki, drip: bytes = bytes.fromhex("160301")
) -> None:
    async with secure_front(plain_broker.url, keys, pki, FrontLimits(connect=0.5)) as front:
        silent = [await FrontClient.open(LOOPBACK, front.tls_port or 0) for _ in range(20)]
        slow = await FrontClient.open(LOOPBACK, front.tls_port or 0)

        async def trickle() -> None:
            """Send a byte of a record's head now and then: activity is not progress."""
            for byte in drip + b"\x02\x00" + bytes(100):
                slow.writer.write(bytes((byte,)))
                await asyncio.sleep(0.05)

        async with asyncio.TaskGroup() as group:
            trickling = group.create_task(trickle())
            for client in (*silent, slow):
                await client.closed()
            trickling.cancel()
        assert front.counts["tls"] == 21
        assert front.connections == 0


async def test_silence_after_the_handshake_is_bounded_as_without_tls(
    plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki
) -> None:
    async with secure_front(plain_broker.url, keys, pki, FrontLimits(connect=0.5)) as front:
        async with asyncio.timeout(240):
            # On a busy machine a handshake may take too long, too.
            while not front.counts["no greeting"]:
                with contextlib.suppress(OSError):
                    await (await connect(front, pki.client)).closed()
        assert front.counts["no greeting"] == 1


async def test_what_is_no_tls_is_turned_away(front: Front, keys: CredentialKeys) -> None:
    mine = keys.issue("device", MAC)
    plain = await FrontClient.open(LOOPBACK, front.tls_port or 0)
    await plain.send(connect_packet(MAC, mine.username, mine.password))
    await plain.closed()
    await until(lambda: front.counts["tls"] == 1)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_oldest_handshake_is_ended_for_one_more_than_are_allowed(
    plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def main() -> None:
        async with secure_front(plain_broker.url, keys, pki, replace(PATIENT, unauthenticated=3)) as front:
            silent = [await FrontClient.open(LOOPBACK, front.tls_port or 0) for _ in range(3)]
            client = await secure_device(front, keys, MAC, pki.client)
            await silent[0].closed()
            burst = [await FrontClient.open(LOOPBACK, front.tls_port or 0) for _ in range(20)]
            for one in (*silent[1:], *burst[:-3]):
                await one.closed()
            assert front.counts["tls full"] == 1 + 19
            await client.ping()
            await FrontClient.discard_all()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


async def test_a_port_that_is_taken_is_told(plain_broker: MosquittoServer, keys: CredentialKeys, pki: Pki) -> None:
    front = Front(
        host=LOOPBACK,
        port=0,
        upstream=plain_broker.url,
        keys=keys,
        secure=TlsBinding(LOOPBACK, plain_broker.port, pki.server()),
    )
    with pytest.raises(ExceptionGroup) as caught:
        await front.run()
    [error] = caught.value.exceptions
    assert isinstance(error, ConfigError) and str(plain_broker.port) in str(error)
