"""Ways to reach one server: its socket, with a password, and with TLS."""

import datetime
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fleet.adapters.redis.client import retries
from fleet.ground.errors import Unavailable
from tests.support.ports import LOOPBACK
from tests.support.process import running
from tests.support.redis_engines import EngineProcess
from tests.support.redis_store import opened
from tests.support.tcp_relay import TcpRelay


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "redis one.sock"


@pytest.fixture
def server(tmp_path: Path, socket: Path) -> Iterator[EngineProcess]:
    with running(EngineProcess("redis", tmp_path, "--unixsocket", str(socket), "--requirepass", "p/w:1")) as server:
        yield server


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of this machine's loopback address, with its key, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "redis")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "redis.pem"
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(private + signed.public_bytes(encoding))
    return path


pytestmark = pytest.mark.usefixtures("patient")


async def test_the_socket_of_a_server(server: EngineProcess, socket: Path) -> None:
    async with opened(f"unix://:p%2Fw%3A1@{str(socket).replace(' ', '%20')}?db=1") as store:
        await store.ping()


async def test_a_server_behind_tls(server: EngineProcess, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with TcpRelay(server.port, context) as relay:
        place = f"rediss://:p%2Fw%3A1@{LOOPBACK}:{relay.port}/0"
        async with opened(f"{place}?ssl_ca_certs={certificate}") as store:
            await store.ping()
        async with opened(f"{place}?ssl_cert_reqs=none") as store:
            await store.ping()
        monkeypatch.setattr(retries, "LIMIT_SECONDS", 0.2)
        with pytest.raises(Unavailable, match="certificate"):
            async with opened(place):
                pass
