"""A chat model that fails: the device hears an apology, is never left speaking, and the log says why in one line."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from fleet.core.text.phrases import phrase
from fleet.workbench.conformance.own_server import steered
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.ports import LOOPBACK
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records.turns import Turn
from tests.e2e.conversation import device_of
from tests.support.fleet_process import FleetProcess, fleet_up
from tests.support.openai_server import SSE, Answer, OpenAiServer, delta, refused, run_openai_server, spoken, sse

LIMIT = 240.0
pytestmark = [pytest.mark.scripted, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def steering() -> AsyncIterator[Steering]:
    """Recognition and voice; the chat model is the one that fails."""
    async with Steering(LOOPBACK, 0, improvise=True) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAiServer]:
    with run_openai_server() as server:
        yield server


@pytest.fixture(scope="module")
def fleet(steering: Steering, model: OpenAiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProcess]:
    settings = {name.upper(): str(value) for name, value in steered(steering.url).items()}
    settings |= {
        "LLM_BASE_URL": model.url,
        "LLM_API_KEY": "a-secret-key",
        # Longer than the model may stand still on a busy machine.
        "LLM_SILENCE_SECONDS": "12",
        "LLM_TIMEOUT": "24",
    }
    with fleet_up(tmp_path_factory.mktemp("faults"), patient=True, **settings) as process:
        yield process


async def ask(device: SimDevice, model: OpenAiServer) -> Turn:
    """Say something until the model is heard: a standstill may cut the words in two, or the turn off."""
    before, broken = len(model.requests), (phrase("not_understood", "en"), phrase("interrupted", "en"))
    async with asyncio.timeout(LIMIT):
        while True:
            turn = await device.say(voice.say(voice.MARKS[0], 1.2), LIMIT)
            if turn.outcome != "answered" or (len(model.requests) > before and turn.reply not in broken):
                return turn


@pytest.mark.parametrize(
    ("answer", "said_before"),
    [
        (spoken("The first sentence is complete. ", "The second", then="break"), "first sentence"),
        (spoken("The first sentence is complete. ", "The second", then="silent"), "first sentence"),
        (Answer(sse(*[delta(content="This goes on. ")] * 1000), kind=SSE, pace=0.5), "goes on"),
        (refused(401, "invalid_api_key", "Incorrect API key provided"), ""),
        (refused(500), ""),
        (Answer([b"this is no event stream"], kind="text/html"), ""),
        (Answer([b"{}"]), ""),
    ],
    ids=["breaks off", "falls silent", "never ends", "wrong key", "server error", "nonsense", "no completion"],
)
async def test_the_device_hears_an_apology(
    fleet: FleetProcess, model: OpenAiServer, answer: Answer, said_before: str
) -> None:
    model.chat(answer)
    seen = len(fleet.lines)
    async with device_of(fleet) as device:
        turn = await ask(device, model)
        assert turn.outcome == "answered"
    assert "sorry" in turn.reply.lower()
    assert said_before in turn.reply
    reason = str(fleet.wait_for("turn failed", after=seen)["reason"])
    assert "\n" not in reason
    assert "a-secret-key" not in "".join(map(str, fleet.lines))
    assert not any("exc_info" in line or "Traceback" in str(line) for line in fleet.lines[seen:])


async def test_the_next_turn_works(fleet: FleetProcess, model: OpenAiServer) -> None:
    model.chat(refused(500))
    async with device_of(fleet) as device:
        await ask(device, model)
        model.chat(spoken("Everything is fine again."))
        turn = await ask(device, model)
        assert turn.outcome == "answered"
    assert "fine again" in turn.reply


async def test_an_empty_answer_is_apologised_for_and_leaves_the_device_listening(
    fleet: FleetProcess, model: OpenAiServer
) -> None:
    model.chat(spoken(""))
    async with device_of(fleet) as device:
        turn = await ask(device, model)
        assert turn.outcome == "answered" and turn.reply == phrase("failed", "en")
        assert await device.until(240, lambda: device.listening)
        model.chat(spoken("Here I am."))
        assert (await ask(device, model)).outcome == "answered"
