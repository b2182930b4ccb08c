"""Texts that recognisers make of noise: nobody said them, so they must not become commands."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

Phantom = Literal["phrase", "repetition"]
"""Why a text is a phantom."""

_LOOP = re.compile(r"(?P<unit>.{1,12}?)(?P=unit){3,}")
"""Four times the same, or more often, and nothing else."""
_CLAUSE = re.compile(r"[,.!?;，。！？；、]")
_NUMERALS = frozenset("零〇一二三四五六七八九十百千万两幺")


def find_phantom(text: str) -> Phantom | None:
    """Return why a transcript is a phantom; None if somebody may have said it.

    A text is judged as a whole: known words of subtitles inside a sentence, and repetitions with other words around
    them, are speech. So are repeated digits, and repeated words such as "no" and 不.
    """
    reduced = reduce(text)
    texts, patterns, repeatable = _known()
    if reduced in texts or patterns.fullmatch(reduced):
        return "phrase"
    loop = _LOOP.fullmatch(reduced)
    if not loop:
        return None
    unit = loop["unit"]
    spoken = unit in repeatable or all(sign.isdigit() or sign in _NUMERALS for sign in unit)
    return None if spoken else "repetition"


def is_made_of(text: str, whole: str) -> bool:
    """Return whether every clause of a text stands in another one, apart from case, spaces and punctuation."""
    clauses = [part for clause in _CLAUSE.split(text) if (part := reduce(clause))]
    return bool(clauses) and all(clause in reduce(whole) for clause in clauses)


def reduce(text: str) -> str:
    """Return a text in lower case without spaces and punctuation."""
    return "".join(sign for sign in text.lower() if sign.isalnum())


@cache
def _known() -> tuple[frozenset[str], re.Pattern[str], frozenset[str]]:
    data = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    texts = frozenset(map(reduce, data["texts"]))
    return texts, re.compile("|".join(f"(?:{pattern})" for pattern in data["patterns"])), frozenset(data["repeatable"])
