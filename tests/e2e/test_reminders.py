"""Reminders on a live fleet without control: devices want them, and are told once though their worker was killed."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from tests.support.openai_server import Answer, OpenAiServer, Request, asked, run_openai_server, spoken
from tests.support.process import accepts
from tests.support.recordings import recordings
from tests.support.role_process import RoleProcess
from tests.support.role_site import RoleSite, role_site
from tests.support.scripted_server import tone
from tests.support.until import until
from tests.support.waking import wake_up

pytestmark = pytest.mark.scripted

LIMIT = 240.0
WORDS = recordings("en")[2].pcm()
TEXT = "Take the cake out of the oven."
NEW, OLD = "02:00:00:00:0f:01", "02:00:00:00:0f:03"
SECONDS = 8


def answer(request: Request) -> Answer:
    """Set a reminder, then say so."""
    if request.json["messages"][-1]["role"] == "tool":
        return spoken("I will.")
    arguments = json.dumps({"text": TEXT, "in_seconds": SECONDS})
    return asked({"index": 0, "id": "c1", "function": {"name": "set_reminder", "arguments": arguments}})


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with run_openai_server() as server:
        server.answer("chat/completions", answer)
        heard = Answer([json.dumps({"text": "Remind me of the cake.", "language": "en"}).encode()])
        server.answer("audio/transcriptions", lambda _: heard)
        server.speech(Answer([tone(0.5)], kind="audio/pcm"))
        yield server


async def wish(device: SimDevice) -> None:
    """Say what to be reminded of, and end the session."""
    await wake_up(device)
    turn = await device.say(WORDS, seconds=LIMIT)
    assert turn.outcome == "answered", turn
    await device.hang_up(LIMIT)


def alerts(device: SimDevice) -> list[str]:
    return [text for one in device.journal.find("alert") if TEXT in (text := str(one.detail["message"]))]


async def test_devices_are_told_once_though_worker_and_redis_were_killed(models: OpenAiServer, tmp_path: Path) -> None:
    with role_site(tmp_path, models.url, durable=True) as site:
        site.edge()
        site.api()
        first = start_worker(site)
        await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(site.http_port), LIMIT)
        new, old = (
            SimDevice(find_profile(profile), ota_url=site.ota, mac=mac) for profile, mac in (("P9", NEW), ("P1", OLD))
        )
        async with new.running(LIMIT), old.running(LIMIT):
            for device in (new, old):
                await wish(device)
            first.kill()
            site.redis.kill()
            site.redis.start()
            start_worker(site)
            assert await new.until(LIMIT, lambda: bool(new.journal.find("notified")))
            assert await old.until(LIMIT, lambda: bool(alerts(old)))
            assert [TEXT in str(one.detail["text"]) for one in new.journal.find("subtitle")] == [True]
            await asyncio.to_thread(until, lambda: ended(site) == 2, LIMIT)
            assert len(new.journal.find("notify")) == 1 and len(alerts(old)) == 1


def start_worker(site: RoleSite) -> RoleProcess:
    return site.worker(FLEET_HTTP_PUBLIC=f"http://127.0.0.1:{site.http_port}")


def ended(site: RoleSite) -> int:
    """Return how many deliveries all workers ended."""
    return sum(role.count("reminder ended") for role in site.roles)
