"""Jobs with real processes, a broker, a Redis and simulated devices, which count what they are asked to do."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.core.permissions import SCOPES
from fleet.workbench.conformance.tool_use import number_of, saying
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.tools import ScriptedTools
from fleet.workbench.sim.tools.tool import Tool
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, macs, role_site
from tests.support.until import until

DEVICES = 24
LIMIT = 400.0
SETTINGS = {"FLEET_SHARDS": "4"}
NAME = "self.stage.light"
DONE = saying("on")


async def _never(*_: object) -> bool:
    raise AssertionError("each request is answered by the test")


@dataclass
class House:
    """Control, an api and two workers, with devices that are connected."""

    site: RoleSite
    port: int
    token: str
    workers: list[RoleProcess] = field(default_factory=list)
    control: RoleProcess | None = None
    devices: list[ScriptedDevice] = field(default_factory=list)

    def start_control(self) -> RoleProcess:
        settings = {"FLEET_CONTROL_PORT": str(self.port), "FLEET_DATA_DIR": str(self.site.directory), **SETTINGS}
        self.control = self.site.start("control", **settings)
        return self.control

    def asked(self) -> dict[str, int]:
        """Return how often each device was asked."""
        return {device.mac: len(device.tools.find(NAME)) for device in self.devices}

    async def ask(self, verb: str, **more: Any) -> Any:
        """Send a request, as often as it takes while control starts."""
        method, _, path = verb.partition(" ")
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"http://{LOOPBACK}:{self.port}"
        async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=240) as client:
            while True:
                try:
                    found = await client.request(method, f"/v1{path}", **more)
                except httpx2.TransportError:
                    assert self.control is not None and self.control.code is None
                    await asyncio.sleep(0.1)
                    continue
                assert found.status_code < 300, found.text
                return found.json()

    async def job(self, number: int) -> Any:
        return await self.ask(f"GET /jobs/{number}")

    async def until(self, number: int, reached: Callable[[Any], bool]) -> Any:
        while not reached(job := await self.job(number)):
            await asyncio.sleep(0.1)
        return job

    async def create(self, **policy: Any) -> int:
        body = {"name": "light", "tool": NAME, "query": "", "policy": {"rate": 20, **policy}}
        return int((await self.ask("POST /jobs", json=body))["id"])


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    token = OperatorTokens(tmp_path / "operator-tokens").add("test", frozenset(SCOPES))
    with role_site(tmp_path) as site:
        house = House(site, free_port(), token)
        site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **SETTINGS)
        house.workers = [site.worker(**SETTINGS), site.worker(**SETTINGS)]
        house.start_control()
        await asyncio.to_thread(until, lambda: accepts(site.http_port), LIMIT)
        await asyncio.to_thread(site.until_spread, 2, 2, seconds=LIMIT)
        async with AsyncExitStack() as stack:
            for mac in macs(DEVICES):
                house.devices.append(await stack.enter_async_context(device(site, mac)))
            while (found := await house.ask("GET /devices?filter=online%20AND%20tool=" + NAME))["items"] is not None:
                if len(found["items"]) == DEVICES:
                    break
                await asyncio.sleep(0.2)
            yield house
        crashes = [line for role in site.roles for line in role.lines if "crashed" in str(line["message"])]
    assert crashes == []


@asynccontextmanager
async def device(site: RoleSite, mac: str) -> AsyncIterator[ScriptedDevice]:
    one = ScriptedDevice(find_profile("P1"), mac, site.ota)
    one.tools = ScriptedTools(one.profile, one.clock, (Tool(NAME, "Switches the light on.", _never),))
    one.tools.intercept[NAME] = DONE
    async with one.running():
        assert await one.connect() == 0
        yield one


def failed(request: JsonObject) -> str:
    said = '{"content":[{"type":"text","text":"no lamp"}],"isError":true}'
    return f'{{"jsonrpc":"2.0","id":{number_of(request)},"result":{said}}}'


async def test_a_canary_that_fails_halts_and_no_more_than_window_and_sample_are_touched(house: House) -> None:
    async with asyncio.timeout(LIMIT):
        for one in house.devices:
            one.tools.intercept[NAME] = failed
        stages = [{"count": 10, "min_sample": 5}, {"share": 1}]
        job = await house.create(stages=stages, window=3, halt_sample=5)
        halted = await house.until(job, lambda one: one["state"] == "halted" and not one["counts"]["sent"])
        assert halted["stage"] == 1 and halted["counts"]["error"] <= 3 + 5
        asked = house.asked()
        assert sum(asked.values()) == halted["counts"]["error"] and set(asked.values()) <= {0, 1}
        for one in house.devices:
            one.tools.intercept[NAME] = DONE
        await house.ask(f"POST /jobs/{job}:continue")
        ended = await house.until(job, lambda one: one["state"] in ("done", "halted"))
        assert (ended["state"], sum(house.asked().values())) == ("done", DEVICES), ended
        rows = (await house.ask(f"GET /jobs/{job}/executions"))["items"]
        assert [row["device"] for row in rows] == sorted(house.asked())


@pytest.mark.slow  # By default tests/chaos/test_jobs_killed.py does the same, and kills Redis too.
async def test_worker_and_control_are_killed_in_a_job_and_no_device_is_asked_twice(house: House) -> None:
    async with asyncio.timeout(LIMIT):
        job = await house.create(rate=3, window=4, halt_share=1.0)
        for kills in (1, 2):
            await asyncio.to_thread(until, lambda kills=kills: sum(house.asked().values()) >= 6 * kills, LIMIT)
            assert house.control is not None
            await asyncio.to_thread(house.control.kill)
            house.start_control()
        await asyncio.to_thread(until, lambda: sum(house.asked().values()) >= 18, LIMIT)
        await asyncio.to_thread(house.workers[0].kill)
        ended = await house.until(job, lambda one: one["state"] == "done")
        rows = {row["device"]: row for row in (await house.ask(f"GET /jobs/{job}/executions"))["items"]}
    asked, counts = house.asked(), ended["counts"]
    print("outcomes", {state: count for state, count in counts.items() if count})
    assert set(asked.values()) <= {0, 1}, asked
    assert counts["ok"] + counts["unknown"] == DEVICES == ended["devices"]
    assert {mac for mac, row in rows.items() if row["state"] == "ok"} <= {mac for mac, times in asked.items() if times}
    assert counts["unknown"] <= 4, "only what was under way with the killed worker"
