"""A call that needs the user's yes, with a simulated device: the question is heard, and only a spoken yes makes it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.records.turns import Turn
from tests.support.openai_server import Answer, OpenAiServer, Request, asked, run_openai_server, spoken
from tests.support.process import accepts
from tests.support.recordings import recordings
from tests.support.role_site import RoleSite, role_site
from tests.support.until import until
from tests.support.waking import wake_up

pytestmark = pytest.mark.scripted

LIMIT = 240.0
WORDS = recordings("en")[2].pcm()
TONE = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 250
"""A quarter of a second at 24 kHz."""
LOUD, QUIET = 70, 12
COMMAND = "Set the volume to twelve."
QUESTION = "Should I really do this: set the volume, volume 12? Please say yes or no."
TOOL = "self.audio_speaker.set_volume"


def answer(request: Request) -> Answer:
    """Call the tool for the command; after a result, or anything else, claim that the user has agreed."""
    messages = request.json["messages"]
    if messages[-1]["role"] == "tool" or COMMAND not in str(messages[-1]["content"]):
        return spoken("Yes, you said yes.")
    names = [tool["function"]["name"] for tool in request.json["tools"]]
    name = next(one for one in names if one.endswith("set_volume"))
    return asked({"index": 0, "id": "c1", "function": {"name": name, "arguments": json.dumps({"volume": QUIET})}})


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with run_openai_server() as server:
        server.answer("chat/completions", answer)
        server.speech(Answer([TONE], kind="audio/pcm"))
        yield server


@asynccontextmanager
async def awake(site: RoleSite) -> AsyncIterator[SimDevice]:
    """Run an edge, an api, a worker that asks before it changes anything, and a device in a session."""
    site.edge()
    site.api()
    site.worker(FLEET_TOOL_POLICY="ask act")
    await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(site.http_port), LIMIT)
    device = SimDevice(find_profile("P1"), ota_url=site.ota, mac="02:00:00:00:00:01")
    async with device.running(LIMIT):
        device.board.volume = LOUD
        await wake_up(device)
        yield device


async def say(models: OpenAiServer, device: SimDevice, text: str) -> Turn:
    heard = Answer([json.dumps({"text": text, "language": "en"}).encode()])
    models.answer("audio/transcriptions", lambda _: heard)
    turn = await device.say(WORDS, seconds=LIMIT)
    assert turn.outcome == "answered"
    return turn


async def test_only_a_spoken_yes_makes_the_call(models: OpenAiServer, tmp_path: Path) -> None:
    with role_site(tmp_path, models.url) as site:
        async with awake(site) as device:
            for reply, volume in (("No, leave it.", LOUD), ("What time is it?", LOUD), ("Yes, please.", QUIET)):
                question = await say(models, device, COMMAND)
                assert " ".join(question.sentences).endswith(QUESTION)
                assert question.calls == [] and device.board.volume == LOUD
                following = await say(models, device, reply)
                assert following.calls == ([TOOL] if volume == QUIET else [])
                assert device.board.volume == volume


async def test_a_yes_of_another_session_makes_no_call(models: OpenAiServer, tmp_path: Path) -> None:
    with role_site(tmp_path, models.url) as site:
        async with awake(site) as device:
            await say(models, device, COMMAND)
            await device.hang_up(LIMIT)
            await wake_up(device)
            assert (await say(models, device, "Yes, please.")).calls == []
            assert device.board.volume == LOUD
