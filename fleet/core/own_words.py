"""Recognise our own words: an echo that became a transcript must neither interrupt nor become a question."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

LEAST_WEIGHT: Final = 4.0
"""Of a run of our words: users also pick shorter ones out of an answer ("the second one"). A single character weighs 1,
a longer word `WORD`: 4 characters or 3 words."""
WORD: Final = 1.5
_SHARE: Final = 0.6
"""Share of a transcript that is a run of what was being said."""
_MOST: Final = 400
"""Words of a transcript, and last words of an answer, that are compared."""
_TOKEN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_APOSTROPHE: Final = re.compile("['\N{RIGHT SINGLE QUOTATION MARK}]")
_REPEATED: Final = re.compile(r"(\w)\1{2,}")

Tokens = tuple[str, ...]


def split(text: str) -> Tokens:
    """Return the words of a text, of Chinese its characters, without case, width and punctuation."""
    folded = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text).casefold())
    return tuple(_REPEATED.sub(r"\1\1", token) for token in _TOKEN.findall(folded))


def weigh(words: Tokens) -> float:
    """Return how much was said."""
    return sum(1.0 if len(word) == 1 else WORD for word in words)


def is_own(text: str, said: Iterable[str], least: float = LEAST_WEIGHT) -> bool:
    """Return whether a transcript is mostly a run of what the server was saying.

    Args:
        text: The transcript.
        said: The sentences that the device may have played meanwhile, the newest last.
        least: Weight of the run from which on it counts.
    """
    heard, spoken = split(text)[:_MOST], split(" ".join(said))[-_MOST:]
    run = SequenceMatcher(None, heard, spoken, autojunk=False).find_longest_match()
    return run.size >= _SHARE * len(heard) and weigh(heard[run.a : run.a + run.size]) >= least
