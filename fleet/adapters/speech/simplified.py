"""Convert Traditional to Simplified Chinese, character by character.

Whisper writes either of them, and no option selects one; tools expect Simplified. In this direction a character nearly
always has one form. So OpenCC's table of characters (26 KB, vendored) suffices, without its phrases and its library.
"""

from functools import cache
from pathlib import Path

_TABLE = Path(__file__).parent / "tables" / "simplified.txt"


def simplify(text: str) -> str:
    """Return a Chinese text in Simplified characters."""
    return text.translate(_table())


@cache
def _table() -> dict[int, str]:
    pairs = _TABLE.read_text(encoding="utf-8").replace("\n", "")
    return {ord(traditional): form for traditional, form in zip(pairs[::2], pairs[1::2], strict=True)}
