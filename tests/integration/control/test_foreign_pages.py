"""Pages of others, in a real Chromium that is signed in to control."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Browser

from tests.support.browser import LIMIT, running_browser
from tests.support.console_browser import PASSWORD, add_account, console_browser
from tests.support.control_server import ControlStage

_SIGN_IN = """async ([name, password]) => {
  const body = JSON.stringify({ name, password });
  const answer = await fetch('/v1/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
  return [answer.status, document.cookie];
}"""
_WHO = "async () => { const answer = await fetch('/v1/me'); return [answer.status, (await answer.json()).name ?? '']; }"
_ATTACK = """async ([control, thief, password]) => {
  const read = [];
  const text = JSON.stringify({ name: thief, password });
  for (const [method, path, body] of [
    ['GET', '/v1/me'], ['GET', '/v1/session'], ['GET', '/v1/events'],
    ['POST', '/v1/session:end_all'], ['POST', '/v1/session', text], ['POST', '/v1/groups', '{"name":"theirs"}'],
  ]) {
    for (const mode of ['no-cors', 'cors']) {
      try {
        const answer = await fetch(control + path, { method, mode, body, credentials: 'include' });
        read.push(answer.status);
      } catch { read.push('hidden'); }
    }
  }
  for (const [path, type] of [['/v1/session:end_all', 'text/plain'], ['/v1/session', 'text/plain']]) {
    const frame = Object.assign(document.createElement('iframe'), { name: `f${path}` });
    const form = Object.assign(document.createElement('form'), {
      method: 'post', action: control + path, enctype: type, target: frame.name,
    });
    const field = Object.assign(document.createElement('input'), {
      name: text.slice(0, -1) + ',"tenant":"default', value: '"}',
    });
    form.append(field);
    document.body.append(frame, form);
    const loaded = new Promise((done) => { frame.onload = done; });
    form.submit();
    await loaded;
  }
  return read;
}"""


@contextmanager
def foreign_server() -> Iterator[int]:
    """Serve an empty page on a port of its own."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>prize</title><body>")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _attack(browser: Browser, control: str, port: int) -> dict[str, Any]:
    context = browser.new_context()
    context.set_default_timeout(LIMIT * 1000)
    own = context.new_page()
    own.goto(f"{control}/v1/docs")
    found: dict[str, Any] = {"signed in": own.evaluate(_SIGN_IN, ["ling", PASSWORD])}
    secrets = {one["name"]: one["value"] for one in context.cookies()}
    for host in ("127.0.0.1", "localhost"):
        page, statuses = context.new_page(), list[int]()
        page.on("response", lambda answer, into=statuses: into.append(answer.status) if control in answer.url else None)
        page.goto(f"http://{host}:{port}/")
        found[host] = page.evaluate(_ATTACK, [control, "thief", PASSWORD]), set(statuses)
    found["after"] = own.evaluate(_WHO), {one["name"]: one["value"] for one in context.cookies()} == secrets
    context.close()
    return found


async def test_a_foreign_page_neither_reads_nor_changes_nor_signs_anybody_in(stage: ControlStage) -> None:
    await add_account(stage, "ling", "owner")
    await add_account(stage, "thief", "owner")
    control = str(stage.client.base_url).rstrip("/")

    def visit() -> dict[str, Any]:
        with running_browser() as browser, foreign_server() as port:
            return _attack(browser, control, port)

    found = await asyncio.to_thread(visit)
    assert found["signed in"] == [201, ""], "no script reads the cookie"
    for host in ("127.0.0.1", "localhost"):
        read, statuses = found[host]
        assert set(read) <= {0, "hidden"}, f"a page of {host} reads an answer"
        assert statuses <= {401, 403, 405}, f"a page of {host} was let in"
        assert 403 in statuses, f"no request of {host} arrived"
    assert found["after"] == ([200, "ling"], True)
    actions = {one["action"] for one in (await stage.ask("GET /v1/audit")).json()["items"]}
    assert actions == {"session.begin"}
    async with console_browser(stage) as other:
        assert (await other.sign_in("ling")).status_code == 201
