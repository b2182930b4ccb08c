"""The api behind TLS, and what devices are told then."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from fleet.adapters.net.http import serving
from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.http.serving import serve
from fleet.adapters.net.http.tls_server import HttpsServer
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.settings import load
from fleet.roles.api.app import build_app
from fleet.wire.identity import CredentialKeys
from tests.support.api_server import BODY, MAC, headers
from tests.support.certificates import Pki, serial
from tests.support.offered_firmware import image_of, offer_firmware, store_file

OTA = "/xiaozhi/ota/"


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki")


@asynccontextmanager
async def https(store: Store, keys: CredentialKeys, pki: Pki, **more: Any) -> AsyncIterator[HttpsServer]:
    settings = load(http_host="127.0.0.1", http_port=0, https_port=0, **pki.settings, **more)
    async with serve(build_app(settings, keys, store), settings) as server:
        assert isinstance(server, HttpsServer)
        yield server


def client(port: int, trust: ssl.SSLContext | None = None) -> httpx2.AsyncClient:
    base = f"https://127.0.0.1:{port}" if trust else f"http://127.0.0.1:{port}"
    return httpx2.AsyncClient(base_url=base, trust_env=False, timeout=240, verify=trust or True)


async def test_a_device_is_told_the_port_on_which_firmware_speaks_tls(
    store: Store, keys: CredentialKeys, pki: Pki
) -> None:
    async with https(store, keys, pki) as server, client(server.port, pki.client) as visitor:
        answer = await visitor.post(OTA, headers=headers(), content=BODY)
        assert answer.status_code == 200
        assert answer.json()["mqtt"]["endpoint"] == "127.0.0.1:8883"
        assert b"Content-Length" in [name for name, _ in answer.headers.raw]


async def test_a_broker_of_ones_own_is_told_as_it_is_set(store: Store, keys: CredentialKeys, pki: Pki) -> None:
    async with (
        https(store, keys, pki, mqtt_public="broker.example:1883") as server,
        client(server.port, pki.client) as visitor,
    ):
        answer = await visitor.post(OTA, headers=headers(), content=BODY)
        assert answer.json()["mqtt"]["endpoint"] == "broker.example:1883"


async def test_who_trusts_another_authority_does_not_come_in(
    store: Store, keys: CredentialKeys, pki: Pki, tmp_path: Path
) -> None:
    async with https(store, keys, pki) as server:
        for trust in (Pki(tmp_path / "other").client, ssl.create_default_context()):
            async with client(server.port, trust) as visitor:
                with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                    await visitor.get("/healthz")


async def test_new_certificate_is_shown_while_a_connection_goes_on(
    store: Store, keys: CredentialKeys, pki: Pki
) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    async with https(store, keys, pki) as server, asyncio.timeout(240):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=pki.client)
        pki.renew()
        wanted = ssl.PEM_cert_to_DER_cert(pki.cert.read_text())
        while True:
            _, other = await asyncio.open_connection("127.0.0.1", server.port, ssl=pki.client)
            found = serial(other)
            other.transport.abort()
            if found == wanted:
                break
            await asyncio.sleep(0.1)
        assert serial(writer) != wanted
        writer.write(request)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.transport.abort()


async def test_a_handshake_that_never_ends_is_ended_and_holds_nobody_up(
    store: Store, keys: CredentialKeys, pki: Pki
) -> None:
    async with https(store, keys, pki) as server, client(server.port, pki.client) as visitor:
        silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(30)]
        assert (await visitor.get("/healthz")).status_code == 200
        async with asyncio.timeout(240):
            for reader, writer in silent:
                assert await reader.read() == b""
                writer.close()
        assert server.counts["tls"] == 30


async def test_plain_http_stays_beside_it_for_this_machine_only_if_wanted(
    store: Store, keys: CredentialKeys, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, HttpServer]] = []

    plain = serving.HttpServer

    def note(app: FastAPI, host: str, port: int, **more: Any) -> HttpServer:
        asked.append((host, plain(app, host, port, **more)))
        return asked[-1][1]

    monkeypatch.setattr(serving, "HttpServer", note)
    for only, host in ((False, "0.0.0.0"), (True, "127.0.0.1")):
        settings = load(http_host="0.0.0.0", http_port=0, https_port=0, tls_only=only, **pki.settings)
        async with serve(build_app(settings, keys, store), settings) as server:
            told, beside = asked.pop()
            assert told == host
            for port, trust in ((server.port, pki.client), (beside.port, None)):
                async with client(port, trust) as visitor:
                    assert (await visitor.get("/healthz")).status_code == 200


async def test_firmware_is_offered_over_https_to_who_came_so(
    store: Store, keys: CredentialKeys, pki: Pki, tmp_path: Path
) -> None:
    image = image_of("9.1.0")
    await offer_firmware(store, MAC, "9.1.0", store_file(tmp_path, image))
    settings = load(http_host="127.0.0.1", http_port=0, https_port=0, firmware_dir=tmp_path, **pki.settings)
    async with (
        serve(build_app(settings, keys, store), settings) as server,
        client(server.port, pki.client) as visitor,
    ):
        url = (await visitor.post(OTA, headers=headers(), content=BODY)).json()["firmware"]["url"]
        assert url.startswith(f"https://127.0.0.1:{server.port}/")
        assert (await visitor.get(url)).content == image


async def test_a_certificate_that_cannot_be_used_ends_the_start(store: Store, keys: CredentialKeys, pki: Pki) -> None:
    pki.key.write_text("junk")
    settings = load(http_host="127.0.0.1", http_port=0, https_port=0, **pki.settings)
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        async with serve(build_app(settings, keys, store), settings):
            pass
    assert "server.key" in str(getattr(caught.value, "exceptions", [caught.value])[0])
