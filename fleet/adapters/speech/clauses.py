"""Cut a sentence into pieces for a voice, so that the first audio is ready early and no piece is too long."""

import re
from collections.abc import Iterator

_CLAUSE = re.compile(
    r"""(?:[^，。！？；：、…,.!?;:]|[,.!?;:]+(?=[0-9A-Za-z]))*"""
    r"""(?:(?:[，。！？；：、…]|[,.!?;:](?![0-9A-Za-z]))+[”’"')）」』]*|$)\s*"""
)
_BREAKABLE = re.compile(r"\s")


def split_clauses(text: str, first: int, growth: float, longest: int) -> list[str]:
    """Return the pieces of a sentence, in order; together they are the whole text.

    Pieces end after punctuation. The first has about `first` characters, so that it is ready soon. Each further one is
    up to `growth` times as long as the one before, so that it is ready when that one has been played.

    Args:
        text: The sentence.
        first: Wanted length of the first piece, in characters.
        growth: Ratio of the lengths of two neighbours.
        longest: Longest piece; a longer clause is cut at a space, or anywhere if it has none.
    """
    pieces: list[str] = []
    allowed = float(first)
    for clause in _short_clauses(text, longest):
        if pieces and len(pieces[-1]) + len(clause) <= min(allowed, longest):
            pieces[-1] += clause
            continue
        if pieces:
            allowed = max(first, len(pieces[-1])) * growth
        pieces.append(clause)
    return [piece for piece in pieces if piece.strip()]


def _short_clauses(text: str, longest: int) -> Iterator[str]:
    for clause in _CLAUSE.findall(text):
        rest = clause
        while len(rest) > longest:
            space = max((found.end() for found in _BREAKABLE.finditer(rest, 0, longest)), default=longest)
            yield rest[:space]
            rest = rest[space:]
        if rest:
            yield rest
