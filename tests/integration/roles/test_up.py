"""`fleet up` told to end by a supervisor: nobody takes over, so it does not wait."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from fleet.adapters.files import endpoints
from fleet.adapters.redis.access.admissions import Admissions
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.fleet_process import FleetProcess, children, fleet_up
from tests.support.mcp_files import tool_program, write_servers
from tests.support.redis_store import opened
from tests.support.role_site import NOWHERE
from tests.support.sim_stage import patient
from tests.support.waking import wake_up

MAC = "02:75:70:00:00:01"
SILENT = {f"{model}_BASE_URL": NOWHERE for model in ("ASR", "TTS", "LLM")} | {"LLM_MODEL": "none"}


def test_worker_and_gateway_share_the_tools_and_all_end_in_order(tmp_path: Path) -> None:
    servers = write_servers(tmp_path / "servers.json", calc=tool_program(tmp_path / "notes"))
    settings = SILENT | {"FLEET_MCP_SERVERS": str(servers), "FLEET_DRAIN_SECONDS": "300"}
    with fleet_up(tmp_path / "data", forked=True, **settings) as process:
        process.wait_for("MCP server connected")
        programs = [Path(f"/proc/{pid}/cmdline").read_text() for pid in children(process.pid)]
        assert sum("mcp_tool_server" in program for program in programs) == 1
        offspring = children(process.pid)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in offspring)
        assert process.errors == []
        assert {line["role"] for line in process.lines if line["message"] == "leaving"} == {"edge", "worker", "gateway"}


def embedded(fleet: FleetProcess, program: str) -> int:
    """Return the process of one of its servers."""
    [found] = [pid for pid in children(fleet.pid) if program in Path(f"/proc/{pid}/cmdline").read_text()]
    return found


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("part", "program"), [("broker", "rumqttd.py"), ("redis", "valkey-server")])
async def test_a_server_of_its_own_that_dies_is_started_again_and_devices_go_on(
    tmp_path: Path, part: str, program: str
) -> None:
    with fleet_up(tmp_path, forked=True, **SILENT) as process:
        device = SimDevice(patient(find_profile("P1")), ota_url=process.ota, mac=MAC)
        async with device.running(240):
            await wake_up(device)
            assert await device.hang_up(240)
            where = endpoints.find(tmp_path)
            assert where is not None
            async with opened(where.redis_url) as store:
                await Admissions(store).set_timezone(MAC, "Asia/Shanghai")
            before = embedded(process, program)
            os.kill(before, signal.SIGKILL)
            await asyncio.to_thread(process.wait_for, "embedded server is back", after=0)
            assert embedded(process, program) != before
            assert [line["part"] for line in process.lines if line["message"].startswith("embedded server died")] == [
                part
            ]
            await wake_up(device)
            assert await device.hang_up(240)
            assert len(device.journal.find("hello")) == 2, "none was lost"
            async with opened(where.redis_url) as store:
                assert (await Admissions(store).read(MAC)).timezone == "Asia/Shanghai", (
                    "what was written before is there"
                )
        assert process.interrupt() == 0
