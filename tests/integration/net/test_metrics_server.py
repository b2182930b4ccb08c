import asyncio
from collections.abc import AsyncIterator

import pytest

from fleet.adapters.net.http import metrics_server
from fleet.adapters.net.http.metrics_server import MetricsServer
from fleet.adapters.net.http.readiness import Readiness
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.tasks import running
from tests.support.patience import METRICS, lengthen
from tests.support.ports import LOOPBACK
from tests.support.scraped import ask, scrape


@pytest.fixture(autouse=True)
def _everybody_may_be_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    lengthen(monkeypatch, METRICS)


@pytest.fixture
def readiness() -> Readiness:
    return Readiness()


@pytest.fixture
async def port(readiness: Readiness) -> AsyncIterator[int]:
    server = MetricsServer(LOOPBACK, 0, readiness)
    async with running("metrics", server.run):
        yield server.port


async def raw(port: int, sent: bytes) -> bytes:
    """Return everything that comes after these bytes, until the connection ends."""
    async with asyncio.timeout(240):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        try:
            writer.write(sent)
            return await reader.read()
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


async def test_a_process_that_lives_is_ready_when_all_of_its_parts_are(port: int, readiness: Readiness) -> None:
    assert (await asyncio.to_thread(ask, port, "/healthz"))[0] == 200
    status, _, body = await asyncio.to_thread(ask, port, "/readyz")
    assert (status, b"starting" in body) == (503, True)
    with readiness.serving():
        assert (await asyncio.to_thread(ask, port, "/readyz"))[0] == 200
    _, _, body = await asyncio.to_thread(ask, port, "/readyz")
    assert b"leaving" in body


async def test_metrics_tell_which_part_is_not_ready(port: int, readiness: Readiness) -> None:
    async def refuse() -> None:
        raise Unavailable("no Redis")

    with (
        readiness.shown(),
        readiness.serving(),
        readiness.requiring("udp", lambda: True),
        readiness.pinging("redis", refuse),
    ):
        scraped = await asyncio.to_thread(scrape, port)
        _, _, body = await asyncio.to_thread(ask, port, "/readyz")
    assert scraped.value("fleet_ready", part="udp") == 1
    assert scraped.value("fleet_ready", part="redis") == 0
    assert body == b'{"status": "unavailable", "reason": "redis: no Redis"}'


async def test_head_gets_no_body_and_other_methods_and_paths_nothing(port: int) -> None:
    status, headers, body = await asyncio.to_thread(ask, port, "/metrics", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000
    assert (await asyncio.to_thread(ask, port, "/metrics", "POST"))[0] == 405
    assert (await asyncio.to_thread(ask, port, "/elsewhere"))[0] == 404


@pytest.mark.parametrize("sent", [b"\r\n\r\n", b"\x16\x03\x01\x00\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n\r\n"])
async def test_what_is_no_request_is_refused(port: int, sent: bytes) -> None:
    assert (await raw(port, sent)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_without_end_is_refused(port: int) -> None:
    assert (await raw(port, b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000)).startswith((b"HTTP/1.1 400 ", b""))


async def test_who_says_nothing_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "LIMIT_SECONDS", 0.05)
    assert await raw(port, b"GET /healthz") == b""


async def test_more_connections_than_the_bound_are_closed_at_once(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "MOST_CONNECTIONS", 0)
    assert await raw(port, b"GET /healthz HTTP/1.1\r\n\r\n") == b""


async def test_a_port_that_is_taken_is_told_with_its_setting(port: int, readiness: Readiness) -> None:
    with pytest.raises(ConfigError, match="FLEET_METRICS_PORT"):
        MetricsServer(LOOPBACK, port, readiness)
