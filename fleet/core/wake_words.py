"""Wake words, and whether a detected text is a wake word or a typed question.

Both arrive as `listen/detect`. Firmware sends it only before it opens its microphone, with the audio of the wake word
(application.cc, ContinueWakeWordInvoke). py-xiaozhi also sends text from its text box in this form, after
`listen start` (src/plugins/ui_session.py, send_text).
"""

import unicodedata
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

LONGEST_QUESTION: Final = 4_000
"""Characters of a typed question; also the api's limit."""
LONGEST_PHRASE: Final = 24
"""Characters of an unknown wake word; the longest one of firmware's models has 18."""
_LONGEST_KNOWN: Final = 200
"""Characters that are compared: an operator's wake word may be longer than others."""
MOST_LEARNT: Final = 10_000
"""Devices whose own wake word is kept; the least recently used one is dropped."""
_NO_PHRASE: Final = frozenset('\n\r\t<>{}?？!！。；;"“”')
"""Characters that no wake word contains."""

# The phrases of the WakeNet models that firmware 2.4 can be built with (espressif/esp-sr, Kconfig.projbuild), the
# default of its own multinet wake word, and those that py-xiaozhi brings (models/*/keywords*.txt).
STOCK: Final = tuple(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines())

Reason = Literal[
    "known wake word",
    "no words",
    "microphone open",
    "came with its audio",
    "no wake word is so long",
    "came without audio",
]


@dataclass(frozen=True, slots=True)
class DetectedKind:
    """Whether a detected text was typed; None while the audio of a wake word may still arrive."""

    typed: bool | None
    reason: Reason


class WakeWords:
    """The wake words of the stock models and of the operator, and those learnt from each device.

    Args:
        further: The operator's wake words.
        most: Devices whose wake word is kept.
    """

    def __init__(self, further: Iterable[str] = (), most: int = MOST_LEARNT) -> None:
        self._known = {fold(word) for word in (*STOCK, *further)} - {""}
        self._learnt: OrderedDict[str, str] = OrderedDict()
        self._most = most

    def knows(self, mac: str, text: str) -> bool:
        """Return whether a text is a wake word of a device."""
        folded = fold(text[:_LONGEST_KNOWN])
        return folded in self._known or self._learnt.get(mac) == folded

    def learn(self, mac: str, text: str) -> None:
        """Store a text that arrived with the audio of a wake word as the device's own wake word."""
        if not (folded := fold(text[:_LONGEST_KNOWN])) or folded in self._known:
            return
        self._learnt[mac] = folded
        self._learnt.move_to_end(mac)
        if len(self._learnt) > self._most:
            self._learnt.popitem(last=False)


def judge(text: str, *, known: bool, listening: bool, burst: bool, late: bool) -> DetectedKind:
    """Decide whether a detected text was typed.

    Args:
        text: The text of the message.
        known: The text is one of the device's wake words.
        listening: The device's microphone is open, or was before the answer that it plays.
        burst: The device just sent more audio than time has passed: stored audio, as of a wake word.
        late: Audio of a wake word cannot arrive any more.
    """
    if known:
        return DetectedKind(typed=False, reason="known wake word")
    if not any(char.isalnum() for char in text):
        return DetectedKind(typed=False, reason="no words")
    if not _may_be_phrase(text):
        return DetectedKind(typed=True, reason="no wake word is so long")
    if burst:
        return DetectedKind(typed=False, reason="came with its audio")
    if listening:
        return DetectedKind(typed=True, reason="microphone open")
    return DetectedKind(typed=True if late else None, reason="came without audio")


def fold(text: str) -> str:
    """Return the letters and digits of a text, without their case and width."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())


def _may_be_phrase(text: str) -> bool:
    return len(text.strip()) <= LONGEST_PHRASE and _NO_PHRASE.isdisjoint(text.strip())
