"""A server's certificate and the changes of its files."""

import logging
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.ground.errors import ConfigError
from tests.support.certificates import Pki


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki", "voice.example")


def shown(server: ServerCertificate, trust: ssl.SSLContext, name: str | None = "voice.example") -> bytes:
    """Return the certificate of a whole handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    trust.check_hostname = name is not None
    client = trust.wrap_bio(to_client, to_server, server_hostname=name)
    there = server.context.wrap_bio(to_server, to_client, server_side=True)
    left = [client, there]
    for _ in range(10):
        for side in list(left):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            left.remove(side)
    assert not left
    found = client.getpeercert(binary_form=True)
    assert found
    return found


def test_new_certificate_is_shown_from_the_next_handshake_on(pki: Pki) -> None:
    server = pki.server()
    before = shown(server, pki.client)
    assert not server.look()
    pki.renew()
    assert server.look()
    assert not server.look()
    after = shown(server, pki.client)
    assert after != before
    assert after == ssl.PEM_cert_to_DER_cert(pki.cert.read_text())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_clients_of_both_versions_that_name_no_server_get_the_new_one_too(pki: Pki, version: ssl.TLSVersion) -> None:
    server = pki.server()
    pki.renew()
    server.look()
    trust = pki.client
    trust.minimum_version = trust.maximum_version = version
    assert shown(server, trust, None) == ssl.PEM_cert_to_DER_cert(pki.cert.read_text())


def test_half_a_change_leaves_the_old_pair_whole(pki: Pki, caplog: pytest.LogCaptureFixture) -> None:
    server = pki.server()
    before = shown(server, pki.client)
    cert, key = pki.draft()
    cert.replace(pki.cert)
    assert not server.look()
    assert not server.look()
    assert shown(server, pki.client) == before
    assert [record.message for record in caplog.records] == ["certificate stays as it was"]
    key.replace(pki.key)
    assert server.look()
    assert shown(server, pki.client) != before


def test_files_that_vanish_leave_the_old_pair(pki: Pki) -> None:
    server = pki.server()
    before = shown(server, pki.client)
    pki.key.unlink()
    assert not server.look()
    assert shown(server, pki.client) == before


def test_old_protocol_versions_are_refused(pki: Pki) -> None:
    assert pki.server().context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_what_cannot_be_used_is_refused_with_its_file(pki: Pki, tmp_path: Path) -> None:
    locked, junk = tmp_path / "locked.key", tmp_path / "junk.pem"
    key = serialization.load_pem_private_key(pki.key.read_bytes(), None)
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    junk.write_text("no certificate")
    other = Pki(tmp_path / "other", "voice.example")
    for cert, secret, message in [
        (tmp_path / "none.pem", pki.key, "none.pem"),
        (pki.cert, locked, "password"),
        (junk, pki.key, "junk.pem"),
        (pki.cert, other.key, "mismatch"),
        (tmp_path, pki.key, str(tmp_path)),
    ]:
        with pytest.raises(ConfigError, match=message):
            ServerCertificate(cert, secret)


def test_an_end_that_is_near_is_told(pki: Pki, caplog: pytest.LogCaptureFixture) -> None:
    server = pki.server()
    with caplog.at_level(logging.WARNING):
        server._warn_before_end(datetime.now(UTC))
        assert not caplog.records
        server._warn_before_end(datetime.now(UTC) + timedelta(days=390))
        server._warn_before_end(datetime.now(UTC) + timedelta(days=4000))
    assert [record.message for record in caplog.records] == ["certificate ends soon", "certificate has expired"]
