"""A push-to-talk press during an answer, without an `abort` before it.

py-xiaozhi sends it (src/bootstrap/session.py, `start_listening`): it leaves its speaking state by itself, and a
`tts stop` would switch its microphone off. Firmware sends `abort` first. If it did not, its `listen start` and our
`tts start` crossed on the way: its microphone is off, and it stays in its speaking state until `tts stop`. Shortly
after `tts start` only the audio distinguishes the two cases.
"""

import math
from typing import Protocol

from fleet.roles.edge.listening.push_to_talk import PushToTalk
from fleet.roles.edge.listening.uplink import Uplink
from fleet.roles.edge.speaking.answer_replay import MISSED_PACKETS
from fleet.roles.edge.speaking.turns import SessionTurns

CROSSING_SECONDS = 1.0
"""A `listen start` this soon after our `tts start` may have been sent before the device received `tts start`."""
MICROPHONE_OFF_SECONDS = 2.0
"""Time without a packet after a press interrupted an answer. Then the microphone is off: the device is in its speaking
state and waits for `tts stop`."""


class PressOwner(Protocol):
    """The session's handling of the button."""

    def stop_listening(self, now: float) -> None:
        """End the press."""


class ManualInterruption:
    """Decides for one session whether such a press interrupts the answer or has crossed with `tts start`.

    Args:
        turns: Of the session.
        uplink: Of the session.
        press: The button.
        owner: Is notified when the press has crossed with `tts start` and ends.
    """

    def __init__(self, turns: SessionTurns, uplink: Uplink, press: PushToTalk, owner: PressOwner) -> None:
        self._turns = turns
        self._uplink = uplink
        self._press = press
        self._owner = owner
        self._pressed_at = 0.0
        self._cut_at = math.inf
        self.crossed = False
        """Whether the press is treated as crossed with `tts start`; the answer goes on."""

    def press(self, now: float) -> None:
        """Handle a press while an answer is spoken."""
        speech = self._turns.downlink.speech
        if not self.crossed:
            self._pressed_at = now
        if speech and now - speech.begun_at < CROSSING_SECONDS:
            # Keep the packets that come now: if the microphone is on, they are the beginning of the question.
            self.crossed = True
            self._uplink.hold()
        else:
            self._cut(now)

    def note_packet(self, now: float) -> None:
        """Handle a packet that came outside of a listening period: in its speaking state a device sends none."""
        self._turns.replay.note_packet(now)
        speech = self._turns.downlink.speech
        if self.crossed and speech and speech.missed_packets >= MISSED_PACKETS:
            self._cut(now)

    def check(self, now: float) -> None:
        """Send `tts stop` to a device that waits in its speaking state for the end of an interrupted answer."""
        # An apology that is spoken meanwhile ends with a `tts stop` of its own, and one before that would cut it off.
        if self._turns.downlink.speaking:
            return
        if now - max(self._cut_at, self._uplink.burst.at) > MICROPHONE_OFF_SECONDS:
            self.reset()
            self._turns.downlink.stop()
            self._owner.stop_listening(now)

    def reset(self) -> None:
        """Forget the press: it was released, or a newer event replaces it."""
        self.crossed, self._cut_at = False, math.inf

    def _cut(self, now: float) -> None:
        self.crossed, self._cut_at = False, now
        self._turns.interrupt("pressed", stop=False)
        self._press.begin(self._pressed_at)
        self._uplink.resume(pressed=True)
