"""The stages of a turn's time, measured by the server and by the device.

Each time is a difference on one clock. The server's times begin when its edge received the last speech, which is later
than the user said it: the device first fills and sends a packet. The device's time begins when the user said it.
"""

import statistics
from collections.abc import Mapping, Sequence

from fleet.workbench.local_servers.log_line import LogLine

Stages = Mapping[str, float]
"""Seconds of the stages that were measured, by their names in NAMES."""

END, ASR, TOKEN, SENTENCE, TTS, SENT, HEARD = NAMES = (
    "end of turn",
    "ASR",
    "first token",
    "first sentence",
    "TTS first byte",
    "first packet",
    "heard",
)

MEANINGS = {
    END: "server: from the last speech that it received to the decision that the user has finished",
    ASR: "server: recognition of the utterance",
    TOKEN: "server: from the utterance to the chat model's first token of the answer, tool calls included",
    SENTENCE: "server: from the utterance to the first whole sentence",
    TTS: "server: from the sentence to its first audio",
    SENT: "server: from the last speech that it received to the first packet of the answer",
    HEARD: "device: from the last sound of the user to the first audible sound of the answer",
}

PARTS = (END, ASR, SENTENCE, TTS)
"""Stages of the server that follow one another; the rest until the first packet is the wait that firmware needs."""
START = "start of playback"
OUTSIDE = "outside the server"
"""The part of the device's time that the server does not measure: the length of the last packet, the network, the quiet
end of the user's last word and begin of the answer's first word, and the DMA buffers."""

_LOGGED = {
    "utterance ended": (END, "endpoint_seconds"),
    "utterance recognised": (ASR, "asr_seconds"),
    "llm first token": (TOKEN, "seconds"),
    "first sentence": (SENTENCE, "seconds"),
    "first audio ready": (TTS, "tts_seconds"),
    "first packet sent": (SENT, "since_end_of_speech"),
}


class StageTimer:
    """Collects the measured stages of a turn; call `restart` before each turn."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self.filled = False
        """Whether the server spoke a filler before the answer."""

    def restart(self) -> None:
        self._seconds, self.filled = {}, False

    def add(self, line: LogLine) -> None:
        """Record a measurement from the server's log; only the first of each stage counts."""
        self.filled = self.filled or line.message == "filler"
        name, field = _LOGGED.get(line.message, ("", ""))
        if field in line.fields:
            self._seconds.setdefault(name, line.number(field))

    def read(self, latencies_ms: Mapping[str, float]) -> Stages:
        """Return the stages of the turn, with the latencies in milliseconds that the device measured.

        HEARD is left out after a filler: the device's first sound was not the answer's.
        """
        heard = None if self.filled else latencies_ms.get("first_audible")
        device = {} if heard is None else {HEARD: heard / 1000}
        return {name: seconds for name in NAMES if (seconds := {**self._seconds, **device}.get(name)) is not None}


def split_stages(stages: Stages) -> dict[str, float]:
    """Return the consecutive stages of the time until the answer was heard; empty if it was not heard.

    The stages of the server come from its clock. OUTSIDE is the total of the device minus the total of the server: both
    are durations, so that no time of one clock is subtracted from a time of the other.
    """
    if HEARD not in stages:
        return {}
    server = {name: stages[name] for name in PARTS if name in stages}
    total = max(stages.get(SENT, 0.0), sum(server.values()))
    return {**server, START: total - sum(server.values()), OUTSIDE: max(0.0, stages[HEARD] - total)}


def medians(turns: Sequence[Stages]) -> dict[str, float]:
    """Return the median of each stage over the turns that have it."""
    found = {name: [turn[name] for turn in turns if name in turn] for name in NAMES}
    return {name: statistics.median(values) for name, values in found.items() if values}
