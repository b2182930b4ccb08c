"""A model of the packets that a device has queued, and of when it takes the next one.

Times are seconds on any steady clock.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

LEAD = 8
"""Frames that the device may have queued. In auto mode it plays them even after an interruption."""
LEAD_OF_INTERRUPTIBLE = 4
"""The lead where the user interrupts by speaking: the device plays its queue over the user's words."""
SETTLE = 0.3
"""Seconds from the modelled end of the playback to `tts stop`, for devices that clear their queue on it: the model
includes neither the network's delay nor the device's own buffers."""
PREFILL = 4
"""Frames that are sent as fast as `SPACING` allows; the rest of the lead is sent at twice the pace of playback."""
SPACING = 0.010
"""Least time between two packets: a device's network stack holds six datagrams."""
MOST_FILLED = 2.0
"""Seconds of silence that are sent inside one sentence; after that nothing is sent until the voice continues."""
EXACT = 1e-6
"""Rounding error of added times, in seconds."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """The pacing of one device's packets.

    A device does not conceal losses: each lost packet shortens its queue by one frame. So one packet per lost frame, at
    most `lead`, is sent ahead of time, and the queue keeps its length. The number of lost frames is an estimate. If no
    frame was lost, the queue holds twice the lead, which is within the 20 packets of firmware 2.5. Between two
    sentences the queue runs empty, so that errors do not add up.
    """

    lead: int = LEAD
    """Frames that the device may have queued; also the most lost frames that are compensated at a time."""
    loss: float = 0.0
    """Known share of packets that are lost."""
    settle: float = 0.0
    """Seconds from the end of the playback to `tts stop`."""


@dataclass(slots=True)
class PlayoutDevice:
    """The model of the device while it is in its speaking state."""

    ready_at: float | None = None
    """When it accepts packets; None before `tts start`."""
    sent_at: float = 0.0
    """When the last packet was sent; 0 before the first."""
    played_at: float = 0.0
    """When it will have played all that was sent."""
    next_at: float = 0.0
    """When the next packet may be sent; `plan` computes it when one of the times above has changed."""
    missing: float = 0.0
    """Lost frames that are not compensated yet."""
    made_up: int = 0
    """Frames that were sent ahead of time in place of lost ones."""

    def note_sent(self, now: float, terms: "PacingTerms") -> None:
        """Note that a packet was sent."""
        self.sent_at = now
        if self.played_at < now:
            # The device plays the packets that were sent ahead of time.
            self.made_up = max(0, self.made_up - int((now - self.played_at) / terms.frame + EXACT))
            self.played_at = now
        self.played_at += terms.frame
        if terms.loss:
            self.add_loss(terms.loss, terms)
        else:
            self.plan(terms)

    def add_loss(self, frames: float, terms: "PacingTerms") -> None:
        """Note lost frames; as many packets are then sent ahead of time, within the bound."""
        self.missing = min(self.missing + frames, terms.most_made_up)
        count = min(int(self.missing), terms.most_made_up - self.made_up)
        self.missing -= count
        self.made_up += count
        self.played_at -= count * terms.frame
        self.plan(terms)

    def plan(self, terms: "PacingTerms") -> None:
        """Compute when the next packet may be sent."""
        queued = self.played_at - self.sent_at
        spaced = self.sent_at + (terms.half if queued >= terms.prefilled else SPACING)
        self.next_at = max(self.played_at - terms.lead, spaced, self.ready_at or 0.0)


class PacingTerms:
    """What the pacing is for packets of a length: times in seconds."""

    __slots__ = ("frame", "half", "lead", "loss", "most_filled", "most_made_up", "prefilled", "settle", "steady")

    def __init__(self, frame_ms: int, pacing: Pacing) -> None:
        self.frame = frame = frame_ms / 1000
        self.half = frame / 2
        self.lead = (pacing.lead - 1) * frame
        self.prefilled = (PREFILL - 1) * frame
        self.most_filled = math.ceil(MOST_FILLED * 1000 / frame_ms)
        self.most_made_up, self.loss, self.settle = pacing.lead, pacing.loss, pacing.settle
        self.steady = math.inf if pacing.loss or self.lead < frame else max(self.half, SPACING)
        """If the lead alone makes the next packet wait at least this long, no other rule decides about it: the device's
        queue has not run empty, and no packet is sent ahead for lost ones."""


@lru_cache(maxsize=256)
def pacing_terms(frame_ms: int, pacing: Pacing) -> PacingTerms:
    """Return the terms of a pacing: one object for all answers with the same, which stays in the processor's cache."""
    return PacingTerms(frame_ms, pacing)
