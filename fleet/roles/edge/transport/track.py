"""Where a device's numbers are: which packets need no proof, and how far the device has come for certain.

A proved stream is live: a packet of the device is used at once. Three things bound what a lucky guess can do then.

- Time: a device sends one packet in each period. So no number is used long before its time, and after
  a gap still less: a leap would make the packets between late.
- The sequential test goes on (`fleet.roles.edge.transport.sequential_test`): each packet that is used adds to its
  score, each other one of the device's address takes from it. Where the score falls to its lower limit, the packets are
  guesses, and the stream needs a proof again.
- Only where the score reaches its upper limit has the device come so far for certain. Numbers above that may be those
  of guesses, so a chain may begin there.
"""

import math
from typing import Final

from fleet.roles.edge.transport.packet_pace import PacketPace
from fleet.roles.edge.transport.sequential_test import SequentialTest

NEAR: Final = 3
"""Numbers ahead of the newest that one packet may claim: the jitter buffer waits for so many."""
EARLY: Final = 8.0
"""Periods before its time in which a number may come after a gap."""
HELD_UP: Final = 64.0
"""The same for the next number: firmware that was busy sends up to 40 packets at once, and none may wait."""
CATCH_UP: Final = 1.2
"""How fast what came before its time becomes timely, against the clock."""
LATE: Final = 64
"""Numbers behind the newest that may still come."""
LIVE_SECONDS: Final = 0.6
"""Time since the last packet but one within which one packet is enough. The last but one, because a single lucky guess
must not prolong it."""
CONFIRMED: Final = 18.0
"""Score of a stream that is the device's."""
REFUTED: Final = -4.0
"""Score of a stream of guesses."""
RETURN_SECONDS: Final = 10.0
"""For this time after a jump, a chain may begin at the numbers before it: the jump may have been a wrong proof."""
QUIET_SECONDS: Final = 0.3
"""After this time without a good packet, payloads too short for audio stand for silence."""
REFUTED_QUIET_SECONDS: Final = 2.0
"""The same after the test refuted a stream: the device's packets wait for a proof meanwhile, and silence between them
would end its utterance. Under 1,000 packets a second in the device's name the proof takes 1.7 s."""


class Track:
    """Of one session.

    Args:
        frame_ms: Milliseconds a packet.
        test: What a packet that is used adds to the score, and what a bad one takes from it.
    """

    __slots__ = (
        "_jumped",
        "_left",
        "_paused",
        "_quiet",
        "_score",
        "last",
        "last_but_one",
        "newest",
        "pace",
        "taken",
    )

    def __init__(self, frame_ms: int, test: SequentialTest) -> None:
        self.newest = 0
        self.taken = 0
        """Packets that were admitted."""
        self.pace = PacketPace(frame_ms / 1000 / CATCH_UP, HELD_UP + 1, -math.inf)
        self.last = self.last_but_one = -math.inf
        """When the last packet and the last but one came."""
        self._score = _Score(test)
        self._paused = self._jumped = -math.inf
        self._left = 0
        self._quiet = QUIET_SECONDS

    def take(self, sequence: int, now: float) -> bool:
        """Go on with a number, if one packet is enough for it."""
        step = sequence - self.newest
        if step == 1:
            return self.advance(sequence, now)
        if not -LATE < step <= NEAR or not self.is_live(now):
            return False
        # In periods before its time; `due` is that of the next number.
        early = (self.pace.due - now) / self.pace.step + max(step, 0) - 1
        # Far behind guesses the device's packets are not late: they wait for a proof. Behind a few leaps they would do
        # so in vain: the device has caught up before enough of them are there.
        if early > EARLY or (step < -EARLY and sequence > self.reached):
            return False
        self.pace.due = now + (max(early, 0.0) + 1) * self.pace.step
        self._count(max(self.newest, sequence), now)
        return True

    def advance(self, sequence: int, now: float) -> bool:
        """Go on with the next number, if one packet is enough for it."""
        if not self.pace.allows(now) or not self.is_live(now):
            return False
        self.pace.add(now)
        self._count(sequence, now)
        return True

    def follow(self, newest: int, last: float, last_but_one: float, due: float) -> None:
        """Go on where another has come by `advance` alone."""
        self.taken += newest - self.newest
        self.newest, self.last, self.last_but_one, self.pace.due = newest, last, last_but_one, due

    def _count(self, newest: int, now: float) -> None:
        self.newest = newest
        self.last_but_one, self.last = self.last, now
        self.taken += 1

    def spoil(self) -> None:
        """Count a packet of the device's address that is not used."""
        if self._score.spoil(self.taken, self.newest):
            self.last_but_one, self._quiet = -math.inf, REFUTED_QUIET_SECONDS

    @property
    def reached(self) -> int:
        """The number that the device has reached for certain."""
        return self._score.count(self.taken, self.newest)

    def is_live(self, now: float) -> bool:
        """Return whether one packet is enough."""
        return now - self.last_but_one <= LIVE_SECONDS

    def begin(self, sequence: int, packets: int, now: float) -> None:
        """Go on with the last number of a chain of so many packets."""
        if sequence - packets > self.newest + NEAR:
            self._left, self._jumped = self.floor(now), now
        self.newest = sequence
        self.last_but_one = self.last = now
        self.pace.due = now + self.pace.step
        self._quiet = QUIET_SECONDS
        self.taken += packets
        self._score.begin(self.taken, sequence)

    def floor(self, now: float) -> int:
        """Return the number from which a chain may begin: packets that somebody kept back are worth nothing later."""
        return self._left if now - self._jumped < RETURN_SECONDS else self.reached

    def pause(self, now: float, frame: float) -> bool:
        """Return whether a silent frame fits here: nothing came for a while, and one at most in `frame` seconds."""
        if now - self.last < self._quiet or now - self._paused < frame * 0.9:
            return False
        self._paused = now
        return True


class _Score:
    """Of the sequential test that goes on. It is counted when a packet is not used, so the usual one costs nothing."""

    __slots__ = ("_counted", "_reached", "_test", "_value")

    def __init__(self, test: SequentialTest) -> None:
        self._test = test
        self._counted = self._reached = 0
        self._value: float | None = None
        """Since the stream was confirmed; None if each packet since then was used."""

    def begin(self, taken: int, reached: int) -> None:
        """Begin after a proof."""
        self._counted, self._reached, self._value = taken, reached, None

    def count(self, taken: int, newest: int) -> int:
        """Count the packets that were used since the last time; return the number that was reached for certain."""
        if self._value is not None:
            self._value += (taken - self._counted) * self._test.gain
        self._counted = taken
        if self._value is None or self._value >= CONFIRMED:
            self._reached, self._value = newest, None
        return self._reached

    def spoil(self, taken: int, newest: int) -> bool:
        """Count a packet that is not used; return whether the stream is refuted."""
        self.count(taken, newest)
        self._value = (self._value or 0.0) - self._test.cost
        return self._value <= REFUTED
