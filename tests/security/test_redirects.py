"""Servers that send our clients elsewhere: nobody is asked who was not set up, with nothing of what was said."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from fleet.ground.errors import FleetError
from tests.security import test_answers
from tests.security.test_answers import CLIENTS
from tests.support.patience import lengthen

LIMIT = 240.0
LIMITS = (
    "fleet.adapters.http_client.ERROR_SECONDS",
    "fleet.adapters.llm.model_name.LISTING_SECONDS",
    "fleet.adapters.net.kubernetes_node._LIMIT_SECONDS",
    "fleet.adapters.tools.load.SOURCE_SECONDS",
    "fleet.adapters.tools.mcp_http._CONNECT_SECONDS",
    f"{test_answers.__name__}.SECONDS",
)
QUIET = {"emqx", "kubernetes", "mcp"}
"""Their failures do not show where the redirect leads."""


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each client wait as long for an answer as a busy machine needs."""
    lengthen(monkeypatch, LIMITS, LIMIT / 2)


@contextmanager
def server(status: int, location: str) -> Iterator[tuple[str, list[str]]]:
    """Run a server that answers everything so; give its address and who asked for what."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            return

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}", asked
    finally:
        running.shutdown()
        running.server_close()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_is_told(status: int, client: str) -> None:
    with server(404, "") as (elsewhere, taken), server(status, f"{elsewhere}/evil?key=secret") as (url, asked):
        async with asyncio.timeout(LIMIT):
            with pytest.raises((FleetError, TimeoutError)) as caught:
                await CLIENTS[client](url)
        assert asked
        assert not taken
        if client not in QUIET:
            assert f"answers with a redirect to {elsewhere}/evil; set the final address" in str(caught.value)


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_redirect_within_a_server_is_not_followed_either(client: str) -> None:
    with server(307, "/elsewhere") as (url, asked):
        async with asyncio.timeout(LIMIT):
            with pytest.raises((FleetError, TimeoutError)):
                await CLIENTS[client](url)
        assert asked
        assert not [one for one in asked if "elsewhere" in one]
