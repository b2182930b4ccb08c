"""The clients of docs/samples/gateway, as a reader would run them, against a real gateway with a scripted model."""

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from playwright.sync_api import Error as BrowserError

from fleet.adapters.files.operator_tokens import GATEWAY_CONNECT, OperatorTokens
from tests.support.browser import Visitor
from tests.support.gateway_process import GatewayProcess, gateway_process
from tests.support.openai_server import refused, spoken
from tests.support.ports import LOOPBACK
from tests.support.scripted_llm import ScriptedLlm, asks, roles, run_scripted_llm

SAMPLES = Path(__file__).parents[3] / "docs/samples/gateway"
LIMIT = 240.0
QUESTION, ANSWER = "How warm is it in the kitchen?", "It is 21.5 degrees in the kitchen."
BROKEN = "What does nobody know?"
Ask = Callable[[str, str, str], str]
"""Runs a client with an address, a question and a token; returns what it prints, on both ways."""


def node() -> list[str]:
    """Return the command of a Node that has WebSockets; nothing where there is none."""
    program = shutil.which("node")
    if program is None:
        return []
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=LIMIT, check=False).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < (20, 10):
        return []
    return [program, "--no-warnings", *([] if version >= (22, 0) else ["--experimental-websocket"])]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def llm() -> Iterator[ScriptedLlm]:
    with run_scripted_llm() as server:
        server.when(QUESTION, asks(("read_thermometer", {"room": "kitchen"})), spoken(ANSWER))
        server.when(BROKEN, refused(401))
        yield server


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens") / "tokens"


@pytest.fixture(scope="module")
def token(token_file: Path) -> str:
    return OperatorTokens(token_file).add("anna", frozenset({GATEWAY_CONNECT}))


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm, token_file: Path, token: str
) -> Iterator[GatewayProcess]:
    """One that wants a token."""
    settings = {"FLEET_GATEWAY_TOKENS": "true", "FLEET_OPERATOR_TOKENS_FILE": str(token_file)}
    with gateway_process(tmp_path_factory.mktemp("gateway"), LLM_BASE_URL=llm.url, **settings) as process:
        yield process


@pytest.fixture(scope="module")
def page_url() -> Iterator[str]:
    """A web server of the reader, which has the client."""
    with ThreadingHTTPServer((LOOPBACK, 0), partial(_Quiet, directory=str(SAMPLES))) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        yield f"http://localhost:{server.server_address[1]}/"
        server.shutdown()
        serving.join()


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.returncode == 0) == (not done.stderr), done
    return (done.stdout + done.stderr).strip()


def in_browser(browser: Browser, page_url: str, *given: str) -> str:
    visitor = Visitor(browser)
    try:
        return str(visitor.open(page_url).evaluate(_ASK, list(given)))
    except BrowserError as error:
        return error.message
    finally:
        visitor.leave()


_ASK = "async (given) => (await import('/client.mjs')).ask(...given)"


@pytest.fixture(params=["python", "chromium", *(["node"] if node() else [])])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Each client in each program that is installed; JavaScript always runs in Chromium, which other tests need too."""
    match request.param:
        case "python":
            return partial(run, sys.executable, str(SAMPLES / "client.py"))
        case "node":
            return partial(run, *node(), str(SAMPLES / "client.mjs"))
        case _:
            return partial(in_browser, *(request.getfixturevalue(name) for name in ("browser", "page_url")))


def test_the_model_gets_what_the_clients_tool_returns(
    ask: Ask, gateway: GatewayProcess, llm: ScriptedLlm, token: str
) -> None:
    assert ask(gateway.url, QUESTION, token) == ANSWER
    last: dict[str, Any] = llm.asked(QUESTION)[-1]
    assert [result.replace(" ", "") for result in roles(last, "tool")] == ['{"room":"kitchen","celsius":21.5}']


def test_an_error_of_the_gateway_is_shown(ask: Ask, gateway: GatewayProcess, token: str) -> None:
    assert "LLM_ERROR: " in ask(gateway.url, BROKEN, token)


def test_a_refused_connection_is_shown(ask: Ask, gateway: GatewayProcess) -> None:
    assert re.search(r"HTTP 401|No connection to ws://", ask(gateway.url, QUESTION, "wrong"))
