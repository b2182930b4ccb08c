"""The user of a device: says something, waits for the answer, and says when it did not come."""

import asyncio
import random

from fleet.workbench.conformance.steering.script import mentioned
from tests.chaos.channel import FRAME, quiet, speech
from tests.chaos.device import Device
from tests.chaos.history import Outcome, Turn, letters
from tests.chaos.house import House

_WARM_UP = 0.2
"""From `listen start` to the first word."""
_LOOK = 0.5
_ALERT_SECONDS = 8.0
"""Wait for the words that explain why the device went idle; longer while a fault lasts. Another worker says them after
the lease of a killed one (6 s)."""
_REST_SECONDS = 10.0
"""Wait for the rest of an answer that stopped before its end."""
_STOP_SECONDS = 5.0
_HANGS_UP = 0.2
HESITATES = 0.4
"""Part of the turns with a pause to think."""
_PAUSE_SECONDS = (FRAME, 1.2)
"""How long it lasts after the silence of the first words: some pauses end the utterance."""
_HARDLY_BEGUN = 0.2
"""Part of the words: a user whose device ends the conversation before takes the button again, and misses no answer."""
_ENOUGH_PACKETS = 12
"""Of an answer whose words were lost with the MQTT connection: more than half of the shortest."""


class Person:
    """Talks to one device.

    Args:
        device: The device.
        house: What all share.
        chance: Its dice.
        hesitates: Part of the turns with a pause to think.
    """

    def __init__(self, device: Device, house: House, chance: random.Random, hesitates: float = HESITATES) -> None:
        self.device = device
        self._house = house
        self._chance = chance
        self._hesitates = hesitates

    async def hold(self, *, final: bool = False, more: int = 1, slow: float = 0.0) -> Turn:
        """Hold one turn, and return it when it is over.

        Args:
            final: Marks it as the last one.
            more: Sentences after the one with the result.
            slow: Seconds between the words of the model.
        """
        await self._listen()
        with self._house.scene(self.device.mac, more=more, slow=slow) as turn:
            turn.final = final
            await asyncio.sleep(_WARM_UP)
            self.device.turn, turn.deaf = turn, not self.device.online
            said = await self._say(turn)
            turn.said = self._house.now()
            turn.outcome = "broken off" if said < _HARDLY_BEGUN else await self._outcome(turn)
            self._house.finish(turn)
        if turn.outcome == "unanswered":
            await self._give_up()
        return turn

    async def _say(self, turn: Turn) -> float:
        """Say the turn's words, sometimes with a pause to think; return which part of them the device sent."""
        words = speech(turn.mark)
        if self._chance.random() >= self._hesitates:
            return await self.device.say(words)
        pause = [quiet()] * round(self._chance.uniform(*_PAUSE_SECONDS) / FRAME)
        said, hears = await self.device.say(words), self.device.online
        if said == 1 and await self.device.say(pause) == 1:
            # A device without MQTT does not hear that the pause has ended the utterance, and talks on.
            turn.resumed = self._house.now() if hears and self.device.online else None
            said = (1 + await self.device.say(words)) / 2
            turn.resumed = turn.resumed if said == 1 else None
        return said

    async def rest(self) -> None:
        """Do something else for a moment; sometimes end the conversation before."""
        await asyncio.sleep(self._chance.uniform(0.05, 0.6))
        if self.device.state == "listening" and self._chance.random() < _HANGS_UP:
            self.device.hang_up()

    async def _listen(self) -> None:
        """Get the device to listen."""
        device, since = self.device, self._house.now()
        while device.state != "listening" or not device.open:
            if device.state == "listening":
                if not await device.until(_STOP_SECONDS, lambda: device.open or device.state != "listening"):
                    self._house.blame("stuck listening", f"{device.mac} listens, and has no channel")
                    device.reset()
            elif device.state == "speaking":
                if not await device.until(_REST_SECONDS, lambda: device.state != "speaking"):
                    await self._give_up()
            elif not device.online:
                await device.until(_LOOK, lambda: device.online)
            elif not await device.press():
                await asyncio.sleep(self._chance.uniform(0.3, 1.0))
            if self._house.late(since):
                self._house.blame("cannot talk", f"{device.mac}: {device.state}, online: {device.online}")
                since = self._house.now()

    async def _outcome(self, turn: Turn) -> Outcome:
        device = self.device
        while True:
            found = judge(turn)
            if found:
                return found
            if turn.stops and await self._stays_short(turn):
                return "answered"
            if device.state == "idle":
                idle = self._house.now()
                while not turn.alerts and not self._house.late(idle, _ALERT_SECONDS):
                    await device.until(_LOOK, lambda: bool(turn.alerts))
                turn.notes.append("heard" if turn.heard else "not heard")
                return judge(turn, idle=True) or "dismissed"
            if self._house.late(turn.said):
                turn.notes += ["heard" if turn.heard else "not heard", f"left {device.state}", f"said {turn.text!r}"]
                return "unanswered"
            await device.until(_LOOK, lambda: bool(judge(turn)) or device.state == "idle")

    async def _stays_short(self, turn: Turn) -> bool:
        """Whether an answer that stopped before its end goes no further."""
        if not any(mentioned(one) == turn.mark for one in turn.sentences):
            return False
        sentences = len(turn.sentences)
        device = self.device
        went_on = await device.until(
            _REST_SECONDS, lambda: len(turn.sentences) > sentences or bool(turn.alerts) or device.state == "idle"
        )
        return not went_on

    async def _give_up(self) -> None:
        """Press the button: a device that speaks must fall silent, one that listens hangs up."""
        device = self.device
        if device.state == "speaking":
            device.interrupt()
            if not await device.until(_STOP_SECONDS, lambda: device.state != "speaking"):
                self._house.blame("stuck speaking", f"{device.mac} was told to stop, and never did")
                device.reset()
        elif device.state == "listening":
            device.hang_up()


def judge(turn: Turn, *, idle: bool = False) -> Outcome | None:
    """Return how a turn ended, None while it has not; `idle` is whether the device does nothing any more."""
    own = [one for one in turn.sentences if mentioned(one) == turn.mark]
    sorry = [one for one in turn.sentences if mentioned(one) is None]
    if turn.stops and sorry:
        return "apologised"
    said = letters(" ".join(own))
    if turn.stops and own and all(letters(one) in said for one in turn.wanted):
        return "answered"
    if (turn.stops or idle) and turn.deaf and len(turn.packets) >= _ENOUGH_PACKETS:
        return "answered"
    if turn.alerts:
        return "apologised"
    return "device alert" if turn.failed else None
