"""Convert Whisper's tokens to text and back: byte-level BPE, without a tokenizer library."""

import re
from functools import cache
from itertools import pairwise

_WORD = re.compile(r" ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+")
_SPECIAL = re.compile(r"<\|.*\|>")


@cache
def _characters() -> tuple[str, ...]:
    """Return the character for each byte: itself for printable Latin-1, characters from U+0100 on for the others."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    symbols = {byte: chr(byte) for byte in printable} | {byte: chr(256 + rank) for rank, byte in enumerate(others)}
    return tuple(symbols[byte] for byte in range(256))


@cache
def _bytes() -> dict[str, int]:
    return {symbol: byte for byte, symbol in enumerate(_characters())}


def decode(tokens: list[str]) -> str:
    """Return the text of tokens; special ones (`<|…|>`) are left out, invalid UTF-8 is replaced."""
    symbols = "".join(token for token in tokens if not _SPECIAL.fullmatch(token))
    return bytes(_bytes().get(symbol, 0x3F) for symbol in symbols).decode(errors="replace")


def encode(text: str, vocabulary: dict[str, int]) -> list[str]:
    """Return the tokens of a text.

    Args:
        text: Plain text.
        vocabulary: Number of each token; of two possible merges the one with the lower number is first, as in training.
    """
    return [token for word in _WORD.findall(text) for token in _merge(word, vocabulary)]


def _merge(word: str, vocabulary: dict[str, int]) -> list[str]:
    parts = [_characters()[byte] for byte in word.encode()]
    while True:
        pairs = ((vocabulary.get(left + right), place) for place, (left, right) in enumerate(pairwise(parts)))
        known = [(rank, place) for rank, place in pairs if rank is not None]
        if not known:
            return parts
        place = min(known)[1]
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
