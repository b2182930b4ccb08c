"""Desired states with real processes, a broker, a Redis and simulated devices whose knobs a user turns."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.core.permissions import SCOPES
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.device import ScriptedDevice
from fleet.workbench.sim.scripted.tools import ScriptedTools
from fleet.workbench.sim.tools.board_tools import tools_of
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, macs, role_site
from tests.support.until import until

LIMIT = 400.0
SETTINGS = {"FLEET_SHARDS": "4"}
POLL_HOURS = "0.0005"
SET_VOLUME = "self.audio_speaker.set_volume"


@dataclass
class Control:
    """Control of a site, over HTTP."""

    process: RoleProcess
    client: httpx2.AsyncClient

    async def ask(self, verb: str, **more: Any) -> httpx2.Response:
        """Send a request, as often as it takes while control starts."""
        method, _, path = verb.partition(" ")
        while True:
            try:
                answer = await self.client.request(method, f"/v1{path}", **more)
                # The database may not get the processor in time.
                if method != "GET" or answer.status_code != 503:
                    return answer
            except httpx2.TransportError:
                assert self.process.code is None
            await asyncio.sleep(0.1)

    async def desire(self, mac: str, desired: dict[str, Any], **policies: str) -> int:
        body = {"desired": desired, "policies": policies}
        found = await self.ask(f"PATCH /devices/{mac}/desired", json=body)
        assert found.status_code == 200, found.text
        return int(found.json()["version"])

    async def states(self, mac: str) -> dict[str, str]:
        found = (await self.ask(f"GET /devices/{mac}/desired")).json()
        return {one["name"]: one["state"] for one in found["properties"]}

    async def until(self, mac: str, reached: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        while not reached(states := await self.states(mac)):
            await asyncio.sleep(0.2)
        return states

    async def events(self, kinds: str) -> list[tuple[str, str]]:
        found = (await self.ask(f"GET /events?kinds={kinds}&limit=500")).json()["items"]
        return [(one["kind"], one["device"]) for one in found]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[tuple[RoleSite, Control]]:
    token = OperatorTokens(tmp_path / "operator-tokens").add("test", frozenset(SCOPES))
    port = free_port()
    with role_site(tmp_path) as site:
        site.start("api", FLEET_HTTP_HOST=LOOPBACK, FLEET_HTTP_PORT=str(site.http_port), **SETTINGS)
        site.worker(**SETTINGS)
        settings = {"FLEET_CONTROL_PORT": str(port), "FLEET_DATA_DIR": str(tmp_path)}
        process = site.start("control", **settings, FLEET_STATE_POLL_HOURS=POLL_HOURS, **SETTINGS)
        await asyncio.to_thread(until, lambda: accepts(site.http_port), LIMIT)
        await asyncio.to_thread(site.until_spread, 4, seconds=LIMIT)
        headers = {"Authorization": f"Bearer {token}"}
        url = f"http://{LOOPBACK}:{port}"
        async with httpx2.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=240) as client:
            yield site, Control(process, client)
        crashes = [line for role in site.roles for line in role.lines if "crashed" in str(line["message"])]
    assert crashes == []


@asynccontextmanager
async def connected(site: RoleSite, mac: str, *, screen: bool = True) -> AsyncIterator[ScriptedDevice]:
    one = ScriptedDevice(find_profile("P1"), mac, site.ota)
    if not screen:
        tools = tuple(tool for tool in tools_of(one.profile) if "screen" not in tool.name)
        one.tools = ScriptedTools(one.profile, one.clock, tools)
    async with one.running():
        assert await one.connect() == 0
        yield one


async def test_desired_while_offline_confirmed_later_and_kept_as_the_policy_says(
    site: tuple[RoleSite, Control],
) -> None:
    place, control = site
    once, enforced, watched, screenless = macs(4)
    async with asyncio.timeout(LIMIT):
        for mac in (once, enforced, watched, screenless):
            assert (await control.ask("POST /devices", json={"mac": mac})).status_code == 201
        await control.desire(once, {"volume": 40, "theme": "dark", "tools": {"self.lamp.turn_on": {}}})
        await control.desire(enforced, {"volume": 40}, volume="enforce")
        await control.desire(watched, {"volume": 70}, volume="watch")
        await control.desire(screenless, {"theme": "dark", "volume": 30}, theme="enforce")
        assert await control.states(once) == {
            "theme": "pending",
            "tools.self.lamp.turn_on": "pending",
            "volume": "pending",
        }
        async with (
            connected(place, once) as first,
            connected(place, enforced) as second,
            connected(place, watched) as third,
            connected(place, screenless, screen=False) as fourth,
        ):
            lamp = "self.lamp.turn_on" in {tool.name for tool in tools_of(first.profile)}
            states = await control.until(once, lambda one: "pending" not in one.values())
            assert states == {
                "theme": "confirmed",
                "volume": "confirmed",
                "tools.self.lamp.turn_on": "sent" if lamp else "unsupported",
            }
            assert (first.tools.board.volume, first.tools.board.theme, first.tools.board.lamp) == (40, "dark", lamp)
            for mac in (enforced, watched):
                await control.until(mac, lambda one: one == {"volume": "confirmed"})
            states = await control.until(screenless, lambda one: "pending" not in one.values())
            assert states == {"theme": "unsupported", "volume": "confirmed"}
            for device in (first, second, third):
                device.tools.board.volume = 90
            await control.until(once, lambda one: one["volume"] == "changed")
            await control.until(watched, lambda one: one["volume"] == "drift")
            while second.tools.board.volume == 90:
                await asyncio.sleep(0.1)
            await control.until(enforced, lambda one: one["volume"] == "confirmed")
            drifting = (await control.ask("GET /devices:drift")).json()["items"]
            assert [one["device"] for one in drifting] == [watched]
            assert [one["reported"]["volume"] for one in drifting] == [90]
            found = (await control.ask("GET /devices?filter=drift%20AND%20online")).json()["items"]
            assert [one["mac"] for one in found] == [watched]
            asked = [len(device.tools.find(SET_VOLUME)) for device in (first, second, third, fourth)]
            assert asked == [1, 2, 0, 1] and fourth.tools.find("self.screen.set_theme") == []
        told = await control.events("state.drift")
        assert sorted(told) == [("state.drift", mac) for mac in sorted((enforced, watched))]


async def test_of_two_writers_one_is_refused(site: tuple[RoleSite, Control]) -> None:
    _, control = site
    (mac,) = macs(1)
    async with asyncio.timeout(LIMIT):
        await control.ask("POST /devices", json={"mac": mac})
        path = f"PATCH /devices/{mac}/desired"
        changes = (
            control.ask(path, json={"desired": {"volume": level}}, headers={"If-Match": '"0"'}) for level in (40, 50)
        )
        answers = await asyncio.gather(*changes)
    assert sorted(one.status_code for one in answers) == [200, 412]
    (kept,) = (one.json()["desired"] for one in answers if one.status_code == 200)
    assert (await control.ask(f"GET /devices/{mac}/desired")).json()["desired"] == kept
