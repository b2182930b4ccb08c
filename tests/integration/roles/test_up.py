"""`fleet up` told to end by a supervisor: nobody takes over, so it does not wait."""

import os
import signal
from pathlib import Path

from tests.support.fleet_process import children, fleet_up
from tests.support.mcp_files import tool_program, write_servers
from tests.support.role_site import NOWHERE

SILENT = {"ASR_BASE_URL": NOWHERE, "TTS_BASE_URL": NOWHERE}


def test_it_ends_in_order_and_leaves_nothing_running(tmp_path: Path) -> None:
    with fleet_up(tmp_path, FLEET_DRAIN_SECONDS="300", **SILENT) as process:
        offspring = children(process.pid)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in offspring)
        assert process.errors == []
        assert {line["role"] for line in process.lines if line["message"] == "leaving"} == {"edge", "worker", "gateway"}


def test_worker_and_gateway_share_the_tools_of_the_server(tmp_path: Path) -> None:
    servers = write_servers(tmp_path / "servers.json", calc=tool_program(tmp_path / "notes"))
    with fleet_up(tmp_path / "data", FLEET_MCP_SERVERS=str(servers), **SILENT) as process:
        process.wait_for("MCP server connected")
        programs = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children(process.pid)]
        assert sum("mcp_tool_server" in program for program in programs) == 1
        assert process.interrupt() == 0
