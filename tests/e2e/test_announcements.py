"""Announcements on a live fleet: control, worker, edge, api and broker are real, and simulated devices play."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.core.permissions import SCOPES
from fleet.wire.operator_calls import AWAKE_LATER
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server, spoken
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.recordings import recordings
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, role_site
from tests.support.scripted_server import tone
from tests.support.until import until
from tests.support.waking import broken_rules, wake_up

NEW, OTHER, OLD = "02:00:00:00:0f:01", "02:00:00:00:0f:02", "02:00:00:00:0f:03"
LIMIT = 240.0
TEXT, ANSWER = "Dinner is ready.", "It is dry."
WORDS = recordings("en")[2].pcm()


class House:
    """A site with control."""

    def __init__(self, site: RoleSite, port: int, token: str, models: OpenAiServer) -> None:
        self.site, self.models = site, models
        self._url, self._headers = f"http://{LOOPBACK}:{port}", {"Authorization": f"Bearer {token}"}

    async def ask(self, verb: str, **more: Any) -> Any:
        method, _, path = verb.partition(" ")
        async with httpx2.AsyncClient(
            base_url=self._url, headers=self._headers, trust_env=False, timeout=LIMIT
        ) as client:
            async with asyncio.timeout(LIMIT):
                # The database may not get the processor in time.
                while (found := await client.request(method, f"/v1{path}", **more)).status_code == 503:
                    await asyncio.sleep(0.5)
            assert found.status_code < 300, found.text
            return found.json()

    async def until(self, verb: str, reached: Any) -> Any:
        async with asyncio.timeout(LIMIT):
            while not reached(found := await self.ask(verb)):
                await asyncio.sleep(0.2)
        return found


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    token = OperatorTokens(tmp_path / "operator-tokens").add("test", frozenset(SCOPES))
    with run_openai_server() as models, role_site(tmp_path, models.url) as site:
        models.speech(Answer([tone(3.0)], kind="audio/pcm"))
        port = free_port()
        site.edge()
        site.api()
        start_worker(site)
        site.start("control", FLEET_CONTROL_PORT=str(port), FLEET_DATA_DIR=str(tmp_path))
        await asyncio.to_thread(until, lambda: accepts(site.http_port) and accepts(port), LIMIT)
        await asyncio.to_thread(until, lambda: site.edges() == 1, LIMIT)
        heard = Answer([json.dumps({"text": "Is it raining?", "language": "en"}).encode()])
        models.answer("audio/transcriptions", lambda _: heard)
        models.answer("chat/completions", lambda _: spoken(ANSWER))
        yield House(site, port, token, models)
        crashes = [line for role in site.roles for line in role.lines if "crashed" in str(line["message"])]
    assert crashes == []


async def test_idle_devices_play_one_synthesis_and_an_old_one_shows_the_text(house: House) -> None:
    devices = {mac: SimDevice(find_profile(profile), ota_url=house.site.ota, mac=mac) for mac, profile in PROFILES}
    async with devices[NEW].running(LIMIT), devices[OTHER].running(LIMIT), devices[OLD].running(LIMIT):
        await house.until("GET /devices?filter=online", lambda found: len(found["items"]) == len(devices))
        made = await house.ask("POST /announcements", json={"text": TEXT, "query": ""})
        number = made["job"]["id"]
        ended = await house.until(f"GET /announcements/{number}", lambda found: found["job"]["state"] == "done")
        assert ended["receipts"] == {"notify: played": 2, "alert: shown": 1}
        for mac in (NEW, OTHER):
            assert await devices[mac].until(LIMIT, lambda mac=mac: bool(devices[mac].journal.find("notified")))
            assert devices[mac].journal.find("notified")[0].detail["fault"] == ""
            assert [one.detail["text"] for one in devices[mac].journal.find("subtitle")] == [TEXT]
        assert not devices[OLD].journal.find("notify")

        made = await house.ask("POST /announcements", json={"text": TEXT, "device": NEW})
        assert await devices[NEW].until(LIMIT, lambda: len(devices[NEW].journal.find("notify")) == 2)
        assert await devices[NEW].until(LIMIT, lambda: devices[NEW].report.counters["downlink_played"] > 50)
        await wake_up(devices[NEW])
        number = made["job"]["id"]
        await house.until(f"GET /announcements/{number}", lambda found: found["job"]["state"] == "done")
        (row,) = (await house.ask(f"GET /jobs/{number}/executions"))["items"]
        assert row["state"] == "ok" and row["text"].startswith("notify: ")
    asked = [one for one in house.models.requests if one.path.endswith("audio/speech")]
    assert len(asked) == 1, "one synthesis for all devices, and for the same text again"
    assert all(broken_rules(device) == [] for device in devices.values())


async def keep(house: House, device: SimDevice, ways: Sequence[str] = ("speech", "wake")) -> int:
    """Announce something to a device that is to hear it when it wakes up; return the announcement's number."""
    await house.until("GET /devices?filter=online", lambda found: len(found["items"]) == 1)
    asked = {"text": TEXT, "device": OLD, "ways": list(ways)}
    number: int = (await house.ask("POST /announcements", json=asked))["job"]["id"]
    await house.until(f"GET /jobs/{number}/executions", lambda found: _row(found)["text"] == AWAKE_LATER)
    await wake_up(device)
    # If this lasts for five seconds, the text is said alone.
    await house.until(f"GET /jobs/{number}/executions", lambda found: _row(found)["state"] != "waiting")
    return number


def _row(found: Any) -> Any:
    return next(iter(found["items"]), {"state": "waiting", "text": ""})


def sentences(device: SimDevice) -> list[str]:
    return [str(one.detail["text"]) for one in device.journal.find("sentence")]


@pytest.mark.parametrize("ways", [("speech", "wake"), ("wake",)])
async def test_what_was_kept_is_spoken_before_the_first_answer_after_waking(house: House, ways: Sequence[str]) -> None:
    device = SimDevice(find_profile("P1"), ota_url=house.site.ota, mac=OLD)
    async with device.running(LIMIT):
        number = await keep(house, device, ways)
        turn = await device.say(WORDS, seconds=LIMIT)
        assert turn.outcome == "answered", turn
        assert await device.until(LIMIT, lambda: ANSWER in sentences(device))
        ended = await house.until(f"GET /announcements/{number}", lambda found: found["job"]["state"] == "done")
        assert ended["receipts"] == {"speech: spoken": 1}
        assert sentences(device) == [TEXT, ANSWER]
        await device.hang_up(LIMIT)
        await wake_up(device)
        await device.say(WORDS, seconds=LIMIT)
        assert sentences(device) == [TEXT, ANSWER, ANSWER]


async def test_what_was_kept_is_spoken_once_though_the_worker_is_killed_meanwhile(house: House) -> None:
    device = SimDevice(find_profile("P1"), ota_url=house.site.ota, mac=OLD)
    async with device.running(LIMIT):
        number = await keep(house, device)
        async with asyncio.TaskGroup() as group:
            talk = group.create_task(device.say(WORDS, seconds=LIMIT))
            assert await device.until(LIMIT, lambda: bool(sentences(device)))
            [worker] = [role for role in house.site.roles if role.role == "worker"]
            await asyncio.to_thread(worker.kill)
            start_worker(house.site)
            await talk
        ended = await house.until(f"GET /announcements/{number}", lambda found: found["job"]["state"] == "done")
        assert set(ended["receipts"]) <= {"speech: spoken", "speech: sent"} and ended["job"]["counts"]["ok"] == 1
    assert sentences(device).count(TEXT) == 1


def start_worker(site: RoleSite) -> RoleProcess:
    return site.worker(FLEET_HTTP_PUBLIC=f"http://{LOOPBACK}:{site.http_port}")


PROFILES = ((NEW, "P9"), (OTHER, "P9"), (OLD, "P1"))
