"""Recorded commands through the whole chain: Opus, UDP, voice detection, recognition, an answer, a voice."""

import asyncio
from collections.abc import Iterator

import pytest

from fleet.workbench.sim.device import TURN_SECONDS, SimDevice
from fleet.workbench.sim.records.turns import Turn
from tests.e2e.conversation import device_of
from tests.support.fleet_process import FleetProcess, fleet_up
from tests.support.recordings import Recording, recordings
from tests.support.until import until
from tests.support.word_errors import error_rate

pytestmark = pytest.mark.conversation

# Rates that the study of the offline set justifies for clean synthetic speech (English words, Chinese characters).
HIGHEST_RATE = {"en": 0.05, "zh": 0.15}
MOST_MEMORY_MB = 700


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetProcess]:
    """A running fleet that brings everything itself."""
    with fleet_up(tmp_path_factory.mktemp("commands")) as process:
        yield process


@pytest.mark.parametrize("which", [slice(1, None, 3), pytest.param(slice(None), marks=pytest.mark.slow)])
async def test_commands_in_each_language_are_understood_and_answered(
    fleet: FleetProcess, capsys: pytest.CaptureFixture[str], which: slice
) -> None:
    chosen = {language: list(recordings(language))[which] for language in HIGHEST_RATE}
    assert min(map(len, chosen.values())) >= 3
    async with asyncio.TaskGroup() as group:
        running = {language: group.create_task(say(fleet, commands)) for language, commands in chosen.items()}
    for language, task in running.items():
        pairs, late = task.result()
        rate = error_rate(pairs, language)
        with capsys.disabled():
            median = sorted(late)[len(late) // 2]
            print(f"\n{language}: error rate {rate:.1%}, to the first sound {median:.0f} ms (median of {len(late)})")
        assert rate <= HIGHEST_RATE[language], pairs
    # By now both languages were heard and spoken. An engine that still runs gives its buffers back when it has ended.
    await asyncio.to_thread(until, lambda: fleet.memory() < MOST_MEMORY_MB)


async def interrupted(device: SimDevice, what: bytes) -> Turn:
    """Say something, and cut the answer off as soon as it is heard: what comes after costs time and shows nothing."""
    turns = device.turns.turns
    before = len(turns)

    def heard() -> bool:
        return len(turns) > before and turns[-1].spoken and "first audible" in turns[-1].times

    saying = asyncio.create_task(device.say(what))
    await device.until(TURN_SECONDS, lambda: heard() or saying.done())
    await device.abort()
    return await saying


async def say(fleet: FleetProcess, commands: list[Recording]) -> tuple[list[tuple[str, str]], list[float]]:
    """Say commands; return what was said with what was understood, and the latencies in ms."""
    pairs, late = [], []
    async with device_of(fleet) as device:
        for recording in commands:
            turn = await interrupted(device, recording.pcm())
            assert turn.outcome in ("aborted", "answered"), recording.text
            pairs.append((recording.text, turn.transcript))
            late.append(turn.latencies["first_audible"])
    return pairs, late
