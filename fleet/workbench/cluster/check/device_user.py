"""The user of a simulated device: opens conversations, asks questions, sometimes hangs up."""

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

_SPEECH_SECONDS = 1.0
_REACTION_SECONDS = 0.3
"""From the begin of listening to the first word."""
_HELLO_SECONDS = 12.0
"""A little more than the limit of the firmware."""
_TURN_SECONDS = 45.0
_SETTLE_SECONDS = 5.0
"""Limit within which a device listens again or is idle."""
_HARDLY_BEGUN = 0.5
"""Seconds of speech. If a goodbye comes before so much was sent, the edge had not detected the speech when it sent the
goodbye; the user repeats the question. Afterwards the edge has detected speech and must not end the session."""
_MOST_ATTEMPTS = 6
_HANG_UP_SHARE = 0.15
_TIMING_RULES = frozenset(
    {
        *("hello-slow", "hello-late", "stop-late", "underrun", "pause", "mailbox-overflow", "queue-overflow"),
        *("audio-before-clear", "audio-outside-speaking", "audio-after-abort", "abort-unanswered"),
    }
)
"""Rules that a busy machine breaks, not the server; the conformance suite checks them on an idle machine."""


class DeviceUser:
    """Talks to one device.

    Args:
        device: A running device.
        marks: Numbers that only this user says.
        history: Records the turns.
        rng: Draws pauses and hang-ups.
    """

    def __init__(self, device: SimDevice, marks: Sequence[int], history: History, rng: random.Random) -> None:
        self.name = device.mac
        self._device, self._history, self._rng = device, history, rng
        self._marks: Iterator[int] = cycle(marks)
        self._clock = asyncio.get_running_loop().time
        history.users.append(self.name)

    async def wait_for_discovery(self, seconds: float) -> None:
        """Wait until the server has asked for the device's tools, at most this long."""
        asked = self._device.journal.find
        await self._device.until(
            seconds, lambda: any(step.detail.get("method") == "tools/list" for step in asked("mcp"))
        )

    async def talk(self, over: Callable[[], bool]) -> None:
        """Ask one question after the other until the restarts are over, then one more."""
        await asyncio.sleep(self._rng.uniform(0.0, 3.0))
        while not over():
            await self.ask()
            await asyncio.sleep(self._rng.uniform(0.1, 1.0))
            if self._device.listening and self._rng.random() < _HANG_UP_SHARE:
                await self._device.hang_up()
        await self.ask()

    async def finish(self, folder: Path) -> None:
        """Hang up, check that the device is idle and its audit has no violation; write its report to the folder."""
        device = self._device
        if device.session and not await device.hang_up():
            self._history.add_fault("wrong state", f"{self.name} stays {device.state.value}")
        if device.state is not State.IDLE:
            self._history.add_fault("wrong state", f"{self.name} is {device.state.value} at the end")
        for one in device.journal.audit.violations:
            if one.rule not in _TIMING_RULES:
                self._history.add_fault("firmware rule", f"{self.name}: {one.rule}: {one.detail}")
        report = device.report
        report.write(folder / f"{self.name.replace(':', '')}.json")
        counts = report.violation_counts
        self._history.timing_violations += sum(count for rule, count in counts.items() if rule in _TIMING_RULES)
        self._history.device_lag = max(self._history.device_lag, report.held_up_ms / 1000)

    async def ask(self) -> None:
        """Ask one question and listen to the answer."""
        turn = self._history.begin(self.name, "device", next(self._marks), self._clock())
        before = self._tool_runs()
        for _ in range(_MOST_ATTEMPTS):
            if await self._start_listening(turn) and await self._say(turn):
                break
        turn.calls = self._tool_runs() - before
        turn.ended = self._clock()
        turn.outcome = "answered" if turn.answer else "lost"

    async def _start_listening(self, turn: Turn) -> bool:
        """Make the device listen; return whether it does."""
        device = self._device
        settled = await device.until(_SETTLE_SECONDS, lambda: device.listening or device.state is State.IDLE)
        if not settled:
            turn.notes.append(f"stays {device.state.value}")
            return False
        if not device.listening and not await device.press(_HELLO_SECONDS):
            turn.notes.append(f"does not listen: {device.state.value}")
            return False
        await asyncio.sleep(_REACTION_SECONDS)
        return device.listening

    async def _say(self, turn: Turn) -> bool:
        """Say the question and wait for the answer; return whether the turn is over."""
        sound, before = voice.say(turn.mark, _SPEECH_SECONDS), self._sent_seconds()
        said = await self._device.say(sound, _TURN_SECONDS)
        turn.asked = said.times.get("end of speech", 0.0)
        # The frame that was captured just before the question is sent after its begin: do not count it.
        sent = self._sent_seconds() - before - self._device.profile.frame_ms / 1000
        if said.outcome == "closed" and not said.transcript and sent < _HARDLY_BEGUN:
            turn.repeats += 1
            return False
        turn.heard = said.times.get("first audible", 0.0)
        if said.outcome == "answered" and mentioned(said.transcript) == turn.mark:
            turn.answer = said.reply
        else:
            turn.notes.append(_describe(said, sent))
        return True

    def _sent_seconds(self) -> float:
        """Return how much audio the device has sent; the clock does not show it if this process is late."""
        return self._device.journal.counters["uplink_sent"] * self._device.profile.frame_ms / 1000

    def _tool_runs(self) -> int:
        return sum(step.detail.get("name") == TOOL for step in self._device.journal.find("tool call"))


def _describe(said: sim_turns.Turn, sent: float) -> str:
    return f"{said.outcome}, {sent:.2f} s were sent, heard {said.transcript!r}, said {said.reply!r}"
