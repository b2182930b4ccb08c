"""A press in the midst of an answer that no `abort` came before.

py-xiaozhi presses so (src/bootstrap/session.py, `start_listening`): it leaves its speaking state by itself, and a
`tts stop` would switch its microphone off. Firmware says `abort` first. Where it does not, its `listen start` has
crossed with `tts start`: its microphone is off, and it stays in its speaking state until `tts stop`. Shortly after the
announcement only the audio distinguishes the two.
"""

import math
from typing import Protocol

from fleet.roles.edge.listening.push_to_talk import PushToTalk
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.speaking.answer_replay import MISSED_PACKETS
from fleet.roles.edge.speaking.turns import SessionTurns

CROSSING_SECONDS = 1.0
"""A device that says it listens this shortly after speech was announced may not yet have heard of it."""
DEAF_SECONDS = 2.0
"""Time without any packet after which the microphone of a press that silenced an answer is off: the device speaks, and
waits for the end."""


class PressOwner(Protocol):
    """Whoever follows the button."""

    def stop_listening(self, now: float) -> None:
        """The button was let go."""


class Interjection:
    """Decides what such a press means in one session.

    Args:
        turns: Of the session.
        uplink: Of the session.
        press: The button.
        owner: Its press ends when it proves to have been none.
    """

    def __init__(self, turns: SessionTurns, uplink: Uplink, press: PushToTalk, owner: PressOwner) -> None:
        self._turns = turns
        self._uplink = uplink
        self._press = press
        self._owner = owner
        self._pressed_at = 0.0
        self._cut_at = math.inf
        self.crossed = False
        """Whether a press is taken for one that crossed, and the answer goes on."""

    def begin(self, now: float) -> None:
        """The button was pressed while an answer is spoken."""
        speech = self._turns.downlink.speech
        if not self.crossed:
            self._pressed_at = now
        if speech and now - speech.begun_at < CROSSING_SECONDS:
            # What comes now is kept: it is the beginning of the question if the microphone is on.
            self.crossed = True
            self._uplink.hold()
        else:
            self._cut(now)

    def hear(self, now: float) -> None:
        """The device sent a packet that nobody listens to: in its speaking state it would send none."""
        self._turns.replay.hear(now)
        speech = self._turns.downlink.speech
        if self.crossed and speech and speech.unheard >= MISSED_PACKETS:
            self._cut(now)

    def check(self, now: float) -> None:
        """Free a device that waits in its speaking state for the end of an answer which was cut off."""
        if now - max(self._cut_at, self._uplink.burst.at) > DEAF_SECONDS:
            self.forget()
            self._turns.downlink.stop()
            self._owner.stop_listening(now)

    def forget(self) -> None:
        """The button was let go, or something newer happened."""
        self.crossed, self._cut_at = False, math.inf

    def _cut(self, now: float) -> None:
        self.crossed, self._cut_at = False, now
        self._turns.interrupt("pressed", stop=False)
        self._press.begin(self._pressed_at)
        self._uplink.resume(pressed=True)
