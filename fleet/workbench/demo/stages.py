"""How the time of a turn was spent, measured by the server and by the device.

Each is the difference of two times of one clock. The server's begin when its edge heard the last speech, which is later
than the user said it: a packet had to be filled and sent. The device's begins when the user said it.
"""

import statistics
from collections.abc import Mapping, Sequence

from fleet.workbench.local_servers.log_line import LogLine

Stages = Mapping[str, float]
"""Seconds by the names of `NAMES`, as far as they were measured."""

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
    END: "server: from the last speech that it heard to the decision that the user has finished",
    ASR: "server: recognition of the utterance",
    TOKEN: "server: from the utterance to the chat model's first token of the answer, tool calls included",
    SENTENCE: "server: from the utterance to the first whole sentence",
    TTS: "server: from the sentence to its first audio",
    SENT: "server: from the last speech that it heard to the first packet of the answer",
    HEARD: "device: from the last sound of the user to the first audible sound of the answer",
}

PARTS = (END, ASR, SENTENCE, TTS)
"""Those of the server that follow one another; what is left until the first packet is the wait that firmware needs."""
START = "start of playback"
WAY = "outside the server"
"""What the device measured beyond what the server did: the last packet's length, the network, the softest end of the
last word and beginning of the first, which only the ear takes for speech or for silence, and the DMA buffers."""

_LOGGED = {
    "utterance ended": (END, "endpoint_seconds"),
    "utterance recognised": (ASR, "asr_seconds"),
    "llm first token": (TOKEN, "seconds"),
    "first sentence": (SENTENCE, "seconds"),
    "first audio ready": (TTS, "tts_seconds"),
    "first packet sent": (SENT, "since_end_of_speech"),
}


class Stopwatch:
    """Collects the measurements of one turn after the other."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def restart(self) -> None:
        self._seconds = {}

    def take(self, line: LogLine) -> None:
        """Note a measurement of the server; the first of a kind counts."""
        name, field = _LOGGED.get(line.message, ("", ""))
        if field in line.fields:
            self._seconds.setdefault(name, line.number(field))

    def read(self, latencies_ms: Mapping[str, float]) -> Stages:
        """Return the turn's times, with what the device measured in milliseconds."""
        heard = latencies_ms.get("first_audible")
        own = {} if heard is None else {HEARD: heard / 1000}
        return {name: seconds for name in NAMES if (seconds := {**self._seconds, **own}.get(name)) is not None}


def parts(stages: Stages) -> dict[str, float]:
    """Return the time until something was heard, cut into what followed one another; empty when nothing was heard.

    The server's parts come from its clock. The last one is the device's whole less the server's whole, so that no time
    of one clock is subtracted from a time of the other.
    """
    if HEARD not in stages:
        return {}
    cut = {name: stages[name] for name in PARTS if name in stages}
    inside = max(stages.get(SENT, 0.0), sum(cut.values()))
    return {**cut, START: inside - sum(cut.values()), WAY: max(0.0, stages[HEARD] - inside)}


def medians(turns: Sequence[Stages]) -> dict[str, float]:
    """Return the median of each stage over the turns that have it."""
    found = {name: [turn[name] for turn in turns if name in turn] for name in NAMES}
    return {name: statistics.median(values) for name, values in found.items() if values}
