"""A process of a role, played by a shell."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from fleet.ground.errors import Unavailable
from fleet.workbench.cluster.role_process import ProcessPorts, RoleProcess
from fleet.workbench.local_servers.ports import choose

LIMIT = 240
READY = """
import http.server, json, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        ready = Answer.asked > 2
        self.send_response(200 if ready else 503)
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ready" if ready else "no", "reason": "leases"}).encode())
    def log_message(self, *_):
        print(json.dumps({"level": "info", "message": f"asked {Answer.asked} times"}), flush=True)
signal.signal(signal.SIGTERM, lambda *_: (print('{"level": "warning", "message": "SAID"}', flush=True), sys.exit(0)))
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def process(tmp_path: Path, *command: str, metrics: int = 1) -> RoleProcess:
    return RoleProcess(
        "worker", "worker-1", command, tmp_path / "log", ProcessPorts(metrics), stop_seconds=float(LIMIT)
    )


async def test_it_is_ready_when_it_says_so_and_ends_when_asked(tmp_path: Path) -> None:
    port = choose()
    one = process(tmp_path, sys.executable, "-c", READY, str(port), metrics=port)
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
        tasks.create_task(one.run())
        await one.wait_until_ready()
        assert one.is_serving
        assert one.pid > 0
        await one.stop()
    assert "asked 3 times" in one.log_tail()
    assert (one.code, one.failure, one.dropped_work, one.is_serving) == (0, "", False, False)


async def test_who_gives_up_on_something_is_noted(tmp_path: Path) -> None:
    port = choose()
    program = READY.replace("SAID", "drain limit exceeded, some work was not handed over")
    one = process(tmp_path, sys.executable, "-c", program, str(port), metrics=port)
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
        tasks.create_task(one.run())
        await one.wait_until_ready()
        await one.stop()
    assert one.dropped_work


async def test_one_that_ends_by_itself_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    line = json.dumps({"level": "error", "message": "crashed"})
    one = process(tmp_path, "sh", "-c", f"echo '{line}'; echo 'out of paper'; exit 3")
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
        tasks.create_task(one.run())
        with pytest.raises(Unavailable, match="worker-1 ended: out of paper"):
            await one.wait_until_ready()
    assert one.log_tail().splitlines() == [line, "out of paper"]
    assert not one.is_serving
