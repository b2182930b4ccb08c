"""Who comes in from a real browser: by token, and by where the page is from."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fleet.adapters.files.operator_tokens import GATEWAY_CONNECT, OperatorTokens
from tests.support.browser import Visitor
from tests.support.gateway_process import gateway_process
from tests.support.ports import LOOPBACK

MODEL = f"http://{LOOPBACK}:9/v1"
_TRY = """(url) => new Promise((resolve) => {
  const socket = new WebSocket(url);
  socket.onmessage = (event) => { resolve(JSON.parse(event.data).status); socket.close(); };
  socket.onerror = () => resolve("refused");
})"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page_file(tmp_path: Path) -> Path:
    file = tmp_path / "page.html"
    file.write_text("<!doctype html><link rel=icon href=data:,><title>A page</title>", encoding="utf-8")
    return file


@pytest.fixture
def other_server(page_file: Path) -> Iterator[str]:
    """A web server of somebody else; give the address of its page."""
    with ThreadingHTTPServer((LOOPBACK, 0), partial(_Quiet, directory=str(page_file.parent))) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield f"http://localhost:{server.server_address[1]}/{page_file.name}"
        server.shutdown()
        serving.join()


def test_the_page_gives_the_token_that_is_typed_in(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    file = tmp_path / "tokens"
    token = OperatorTokens(file).add("anna", frozenset({GATEWAY_CONNECT}))
    settings = {"FLEET_GATEWAY_TOKENS": "true", "FLEET_OPERATOR_TOKENS_FILE": str(file)}
    with gateway_process(tmp_path, LLM_BASE_URL=MODEL, FLEET_REDIS_URL=redis_url, **settings) as gateway:
        visitor = Visitor(browser, viewport={"width": 1440, "height": 900})
        page = visitor.open(f"{gateway.url.replace('ws', 'http')}/test")
        page.get_by_role("button", name="Connect", exact=True).click()
        expect(page.get_by_text("it wants a token").first).to_be_visible()
        page.get_by_label("Token of the gateway").fill(token)
        page.get_by_label("Token of the gateway").press("Enter")
        expect(page.locator("#state")).to_have_text("Connected")
        expect(page.locator(".status.registered")).to_have_count(4)
        visitor.leave()
        assert [one for one in visitor.complaints if "WebSocket" not in one] == []


@pytest.mark.parametrize(
    ("origins", "answers"),
    [
        (None, {"file": "connected", "other": "connected", "own": "connected"}),
        ("", {"file": "refused", "other": "refused", "own": "connected"}),
        ("null", {"file": "connected", "other": "refused", "own": "connected"}),
    ],
    ids=["default", "only its own", "files"],
)
def test_a_page_comes_in_by_where_it_is_from(
    browser: Browser,
    tmp_path: Path,
    redis_url: str,
    page_file: Path,
    other_server: str,
    origins: str | None,
    answers: dict[str, str],
) -> None:
    settings = {} if origins is None else {"FLEET_GATEWAY_ORIGINS": origins}
    with gateway_process(tmp_path, LLM_BASE_URL=MODEL, FLEET_REDIS_URL=redis_url, **settings) as gateway:
        own = f"{gateway.url.replace('ws', 'http')}/test"
        got = {}
        for name, address in (("file", page_file.as_uri()), ("other", other_server), ("own", own)):
            visitor = Visitor(browser)
            got[name] = visitor.open(address).evaluate(_TRY, gateway.url)
            visitor.leave()
        assert got == answers
