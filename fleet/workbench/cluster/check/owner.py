"""The user of a simulated device: opens a conversation, asks one question after the other, sometimes hangs up."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from fleet.workbench.cluster.check.history import History, Turn
from fleet.workbench.cluster.check.models import TOOL
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.script import mentioned
from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.records import turns as sim_turns
from fleet.workbench.sim.runtime.state import State

_SAID_SECONDS = 1.0
_WARM_UP = 0.3
"""From the device's listening to the first word."""
_HELLO_SECONDS = 12.0
"""A little more than the limit of the firmware."""
_TURN_SECONDS = 45.0
_REST_SECONDS = 5.0
"""Within which a device listens again, or is idle."""
_HARDLY_BEGUN = 0.5
"""Seconds of speech that were sent. A goodbye on its way meets words that nobody has heard: the device falls silent,
its user says it again. Later than that the edge has heard a voice, and must not end the session."""
_MOST_ATTEMPTS = 6
_HANGS_UP = 0.15
_TIMINGS = frozenset(
    {
        *("hello-slow", "hello-late", "stop-late", "underrun", "pause", "mailbox-overflow", "queue-overflow"),
        *("audio-before-clear", "audio-outside-speaking", "audio-after-abort", "abort-unanswered"),
    }
)
"""Rules that a busy machine breaks, not the server; the conformance suite checks them on a quiet one."""


class Owner:
    """Talks to one device.

    Args:
        device: Switched on.
        marks: What only this user says.
        history: Takes the turns.
        chance: The user's dice.
    """

    def __init__(self, device: SimDevice, marks: Sequence[int], history: History, chance: random.Random) -> None:
        self.name = device.mac
        self._device, self._history, self._chance = device, history, chance
        self._marks: Iterator[int] = cycle(marks)
        self._clock = asyncio.get_running_loop().time
        history.people.append(self.name)

    async def meet(self, seconds: float) -> None:
        """Wait until the server has asked for the device's tools, but not longer than this."""
        asked = self._device.journal.find
        await self._device.until(
            seconds, lambda: any(step.detail.get("method") == "tools/list" for step in asked("mcp"))
        )

    async def talk(self, over: Callable[[], bool]) -> None:
        """Ask one question after the other until the restarts are over, then one more."""
        await asyncio.sleep(self._chance.uniform(0.0, 3.0))
        while not over():
            await self.ask()
            await asyncio.sleep(self._chance.uniform(0.1, 1.0))
            if self._device.listening and self._chance.random() < _HANGS_UP:
                await self._device.hang_up()
        await self.ask()

    async def leave(self, folder: Path) -> None:
        """Hang up; the device must be idle then, and its audit without a breach. Its report goes to the folder."""
        device = self._device
        if device.session and not await device.hang_up():
            self._history.blame("wrong state", f"{self.name} is left {device.state.value}")
        if device.state is not State.IDLE:
            self._history.blame("wrong state", f"{self.name} is {device.state.value} in the end")
        for one in device.journal.audit.violations:
            if one.rule not in _TIMINGS:
                self._history.blame("firmware rule", f"{self.name}: {one.rule}: {one.detail}")
        report = device.report
        report.write(folder / f"{self.name.replace(':', '')}.json")
        counts = report.violation_counts
        self._history.rough += sum(count for rule, count in counts.items() if rule in _TIMINGS)
        self._history.held_up = max(self._history.held_up, report.held_up_ms / 1000)

    async def ask(self) -> None:
        """Ask one question and listen to the answer."""
        turn = self._history.begin(self.name, "device", next(self._marks), self._clock())
        ran = self._ran()
        for _ in range(_MOST_ATTEMPTS):
            if await self._open(turn) and await self._say(turn):
                break
        turn.calls = self._ran() - ran
        turn.ended = self._clock()
        turn.outcome = "answered" if turn.answer else "lost"

    async def _open(self, turn: Turn) -> bool:
        """Make the device listen; return whether it does."""
        device = self._device
        settled = await device.until(_REST_SECONDS, lambda: device.listening or device.state is State.IDLE)
        if not settled:
            turn.notes.append(f"is left {device.state.value}")
            return False
        if not device.listening and not await device.press(_HELLO_SECONDS):
            turn.notes.append(f"does not get to listen: {device.state.value}")
            return False
        await asyncio.sleep(_WARM_UP)
        return device.listening

    async def _say(self, turn: Turn) -> bool:
        """Say it; return whether the question is settled."""
        sound, sent = voice.say(turn.mark, _SAID_SECONDS), self._sent_seconds()
        said = await self._device.say(sound, _TURN_SECONDS)
        turn.asked = said.times.get("end of speech", 0.0)
        # The frame that was captured just before is sent after it, too.
        left = self._sent_seconds() - sent - self._device.profile.frame_ms / 1000
        if said.outcome == "closed" and not said.transcript and left < _HARDLY_BEGUN:
            turn.again += 1
            return False
        turn.heard = said.times.get("first audible", 0.0)
        whole = said.outcome == "answered" and mentioned(said.transcript) == turn.mark
        if whole:
            turn.answer = said.reply
        else:
            turn.notes.append(_describe(said, left))
        return True

    def _sent_seconds(self) -> float:
        """Return how much audio has left the device, which the clock does not show when this process is late."""
        return self._device.journal.counters["uplink_sent"] * self._device.profile.frame_ms / 1000

    def _ran(self) -> int:
        return sum(step.detail.get("name") == TOOL for step in self._device.journal.find("tool call"))


def _describe(said: sim_turns.Turn, sent: float) -> str:
    return f"{said.outcome}, {sent:.2f} s were sent, heard {said.transcript!r}, said {said.reply!r}"
