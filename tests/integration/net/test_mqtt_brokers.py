"""MqttSession over TLS, and with other brokers."""

import asyncio
import datetime
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from iotcore.broker import Broker

from fleet.adapters.net.mqtt.session import MqttSession, Reading, tls_context
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.ground.errors import Unavailable
from tests.support.link_session import Recorder, running, until, who
from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_raw import RawClient
from tests.support.ports import free_port
from tests.support.tcp_relay import TcpRelay


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with key and certificate of 127.0.0.1, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "both.pem"
    file.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def shown(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def fresh_authorities() -> Iterator[None]:
    tls_context.cache_clear()
    yield
    tls_context.cache_clear()


@pytest.mark.usefixtures("fresh_authorities")
async def test_tls_session_receives_and_closes_with_a_disconnect(
    plain_broker: MosquittoServer, shown: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    recorder = Recorder()
    async with TcpRelay(plain_broker.port, shown) as relay:
        session = MqttSession(MqttAddress("127.0.0.1", relay.port, tls=True), who("tls-1"), reading=_reading(recorder))
        async with running(session):
            session.publish("tls/a", b"x" * 100_000)
            await until(lambda: recorder.seen == [b"x" * 100_000])
        await until(lambda: relay.sent[0].endswith(b"\xe0\x00"))


@pytest.mark.usefixtures("fresh_authorities")
async def test_certificate_of_an_unknown_authority_is_refused(
    plain_broker: MosquittoServer, shown: ssl.SSLContext
) -> None:
    async with TcpRelay(plain_broker.port, shown) as relay:
        with pytest.raises(Unavailable, match="certificate verify failed"):
            await MqttSession(MqttAddress("127.0.0.1", relay.port, tls=True), who("tls-2")).run()


def _reading(recorder: Recorder) -> Reading:
    return Reading(["tls/+"], recorder)


async def test_rumqttd_keeps_the_session_though_handlers_end_in_reverse() -> None:
    """It closes the connection of a client that acknowledges out of order."""
    port = free_port()
    seconds = iter(range(40, 0, -1))
    recorder = Recorder(lambda _: asyncio.sleep(next(seconds) / 1000))
    with Broker(port=port, listen="127.0.0.1"):
        session = MqttSession(
            MqttAddress("127.0.0.1", port), who("shard"), persistent=True, reading=Reading(["r/up"], recorder)
        )
        async with running(session) as task:
            device = await RawClient.open(port)
            await device.connect("device")
            for number in range(40):
                await device.publish_acknowledged("r/up", b"%d" % number)
            await until(lambda: len(recorder.seen) == 40 and recorder.running == 0)
            session.publish("r/up", b"end")
            seconds = iter([0])
            await until(lambda: b"end" in recorder.seen)
            assert not task.done()
            await device.discard()
    assert recorder.seen == [*(b"%d" % number for number in range(40)), b"end"]
