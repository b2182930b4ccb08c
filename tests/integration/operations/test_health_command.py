"""The probe for health checks."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fleet.operations.health_command import probe

ROOT = Path(__file__).parents[3]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()
        self.wfile.write(b'{"status":"as asked"}')

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(240)
    server.server_close()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fleet.operations.health_command", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


def test_well_is_zero(url: str) -> None:
    done = run(f"{url}/readyz")
    assert done.returncode == 0 and done.stdout == '200 {"status":"as asked"}\n'


def test_ill_is_one_with_the_answer(url: str) -> None:
    done = run(f"{url}/healthz")
    assert done.returncode == 1 and done.stdout.startswith("503 ")


def test_nobody_there_is_ill() -> None:
    well, answer = probe("http://127.0.0.1:1/readyz", 1)
    assert not well and answer.startswith("no answer")


@pytest.mark.parametrize("wrong", ["readyz", "https://127.0.0.1:1/", "http:///readyz"])
def test_what_is_no_address_is_reported(wrong: str) -> None:
    done = run(wrong)
    assert done.returncode == 2 and done.stderr.startswith("fleet: ")


def test_it_loads_nothing_but_the_standard_library() -> None:
    code = "import sys, fleet.operations.health_command; print(*{n.split('.')[0] for n in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {code}"],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert not {"typer", "pydantic", "redis", "asyncio"} & set(done.stdout.split())
