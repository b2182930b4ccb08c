"""The lean client over real connections: which it keeps, which it does not, TLS, and the proxy of the environment."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from fleet.adapters import http_streaming
from fleet.adapters.http_streaming import DirectStreams, HttpStreams, open_streams
from fleet.ground.errors import ConfigError
from tests.support.certificates import Pki

SOON = 10.0
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request of a connection with `answer`."""

    def __init__(self, answer: bytes = HELLO, requests: int = 100) -> None:
        self._answer = answer
        self._requests = requests
        self.connections = 0
        self.heads: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for _ in range(self._requests):
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(self._answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[httpx2.URL]:
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        port = server.sockets[0].getsockname()[1]
        yield httpx2.URL(f"{'https' if tls else 'http'}://localhost:{port}/v1")


async def fetch(streams: HttpStreams, target: str = "/v1/x", content: bytes = b"") -> bytes:
    until = asyncio.get_running_loop().time() + SOON
    async with asyncio.timeout(SOON), streams.ask("GET", target, {"X-Key": "k"}, content) as answer:
        body = b""
        while piece := await answer.read(until):
            body += piece
        return body


async def test_a_connection_is_kept_for_the_next_request() -> None:
    server = Server()
    async with serving(server) as url:
        streams = DirectStreams(url)
        assert [await fetch(streams) for _ in range(3)] == [b"hello"] * 3
        assert server.connections == 1
        assert server.heads[0].startswith(f"GET /v1/x HTTP/1.1\r\nHost: localhost:{url.port}\r\nX-Key: k\r\n")
        await streams.aclose()


async def test_requests_at_the_same_time_have_connections_of_their_own() -> None:
    server = Server()
    async with serving(server) as url:
        streams = DirectStreams(url)
        await asyncio.gather(*[fetch(streams) for _ in range(5)])
        assert server.connections == 5
        await streams.aclose()


async def test_an_answer_that_was_not_read_ends_its_connection() -> None:
    server = Server()
    async with serving(server) as url:
        streams = DirectStreams(url)
        async with asyncio.timeout(SOON), streams.ask("GET", "/", {}, b""):
            pass
        assert await fetch(streams) == b"hello"
        assert server.connections == 2
        await streams.aclose()


async def test_a_kept_connection_that_the_server_closes_is_not_used() -> None:
    server = Server(requests=1)
    async with serving(server) as url:
        streams = DirectStreams(url)
        assert await fetch(streams) == b"hello"
        (kept,) = streams._kept
        async with asyncio.timeout(SOON):
            while kept.alive:
                await asyncio.sleep(0)
        assert await fetch(streams) == b"hello"
        assert server.connections == 2
        await streams.aclose()


async def test_connections_are_kept_for_a_while_and_not_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    async with serving(server) as url:
        streams = DirectStreams(url)
        monkeypatch.setattr(http_streaming, "MOST_KEPT", 2)
        await asyncio.gather(*[fetch(streams) for _ in range(4)])
        assert len(streams._kept) == 2
        monkeypatch.setattr(http_streaming, "KEPT_SECONDS", 0.0)
        await fetch(streams)
        async with asyncio.timeout(SOON):
            while len(streams._kept) > 1:
                await asyncio.sleep(0)
        await streams.aclose()
        assert not streams._kept


async def test_requests_beyond_the_most_connections_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_streaming, "MOST_CONNECTIONS", 2)
    server = Server()
    async with serving(server) as url:
        streams = DirectStreams(url)
        assert await asyncio.gather(*[fetch(streams) for _ in range(6)]) == [b"hello"] * 6
        assert server.connections == 2
        await streams.aclose()


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0", "ключ"])
async def test_a_header_cannot_begin_another(value: str) -> None:
    streams = DirectStreams(httpx2.URL("http://127.0.0.1:9"))
    with pytest.raises(httpx2.LocalProtocolError):
        async with streams.ask("GET", "/", {"Authorization": value}, b""):
            pass


async def test_a_name_that_does_not_exist_is_said() -> None:
    with pytest.raises(httpx2.ConnectError, match=r"(?i)name|known|resol|address"):
        await fetch(DirectStreams(httpx2.URL("http://no-such-host.invalid/")))


@pytest.mark.parametrize("host", ["a..b", ".a", f"{'a' * 64}.example"])
async def test_a_name_that_cannot_be_asked_for_is_not_reached(host: str) -> None:
    with pytest.raises(httpx2.ConnectError, match=r"idna|label"):
        await fetch(DirectStreams(httpx2.URL(f"http://{host}/")))


async def test_tls_is_verified(tmp_path: Path) -> None:
    pki = Pki(tmp_path)
    async with serving(Server(), pki.server().context) as url:
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await fetch(DirectStreams(url))
        streams = DirectStreams(url, pki.client)
        assert await fetch(streams) == b"hello"
        await streams.aclose()


async def test_a_certificate_of_another_name_is_refused(tmp_path: Path) -> None:
    pki = Pki(tmp_path, "other.example")
    async with serving(Server(), pki.server().context) as url:
        with pytest.raises(httpx2.ConnectError, match="Hostname mismatch"):
            await fetch(DirectStreams(url, pki.client))


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_whose_request_is_not_sent_completely_is_not_kept(tmp_path: Path, scheme: str) -> None:
    pki = Pki(tmp_path)
    gone = asyncio.Event()

    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HELLO)
        await gone.wait()
        writer.close()

    async with serving(answer_early, pki.server().context if scheme == "https" else None) as url:
        streams = DirectStreams(url, pki.client)
        assert await fetch(streams, content=bytes(16 * 1024 * 1024)) == b"hello"
        assert not streams._kept
        gone.set()
        await streams.aclose()


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


async def test_a_proxy_of_the_environment_gets_the_requests(no_proxies: pytest.MonkeyPatch) -> None:
    proxy = Server()
    async with serving(proxy) as url:
        no_proxies.setenv("HTTP_PROXY", f"http://me:secret@localhost:{url.port}")
        streams = open_streams(httpx2.URL("http://model.example/v1"), 1000)
        assert await fetch(streams) == b"hello"
        assert proxy.heads[0].startswith("GET http://model.example/v1/x HTTP/1.1\r\n")
        assert "proxy-authorization: basic" in proxy.heads[0].lower()
        await streams.aclose()


async def test_a_tunnel_is_asked_for_where_the_server_speaks_tls(no_proxies: pytest.MonkeyPatch) -> None:
    proxy = Server(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    async with serving(proxy) as url:
        no_proxies.setenv("ALL_PROXY", f"http://localhost:{url.port}")
        streams = open_streams(httpx2.URL("https://model.example/v1"), 1000)
        with pytest.raises(httpx2.TransportError):
            await fetch(streams)
        assert proxy.heads[0].startswith("CONNECT model.example:443 HTTP/1.1\r\n")
        await streams.aclose()


@pytest.mark.parametrize(
    "proxy",
    [
        *["socks5://me:secret@localhost:1", "ftp://localhost:1", "localhost:x", "http://localhost:1 x", "http://[::1"],
        *["http://me:secret@localhost:99999", "localhost:99999"],
    ],
)
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_cannot_be_used_is_refused_at_once(no_proxies: pytest.MonkeyPatch, name: str, proxy: str) -> None:
    no_proxies.setenv(name, proxy)
    with pytest.raises(ConfigError, match="proxy of the environment") as caught:
        open_streams(httpx2.URL("http://model.example/v1"), 1000)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("excepted", ["localhost", "*", "other.example, localhost"])
async def test_what_no_proxy_names_is_asked_directly(no_proxies: pytest.MonkeyPatch, excepted: str) -> None:
    no_proxies.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    no_proxies.setenv("NO_PROXY", excepted)
    async with serving(Server()) as url:
        streams = open_streams(url, 1000)
        assert isinstance(streams, DirectStreams)
        assert await fetch(streams) == b"hello"
        await streams.aclose()


async def test_a_server_is_reached_at_its_second_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Server()) as url:

        async def look_up(*_: object, **__: object) -> object:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, ("127.0.0.2", url.port)), (*kind, ("127.0.0.1", url.port))]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
        streams = DirectStreams(url)
        assert await fetch(streams) == b"hello"
        await streams.aclose()
