"""The JSON of frames: parsed values can be encoded in UTF-8 again, and everything that is not JSON is refused."""

import json
import math
import re

LARGEST_FRAME = 256 * 1024
"""Bytes of the largest frame that is parsed; firmware sends at most 60 KB."""

MOST_VALUES = 20_000
"""Values in a frame of the gateway: parsing 300,000 empty lists takes a tenth of a second. A result with more values is
longer than the part that models get."""

VALUE_BYTES = 64
"""Bytes of text that take as long as a value: to be parsed, and looked at as a part of a schema."""

_MOST_STRINGS = 2 * MOST_VALUES
"""Texts of a frame that holds so many values: names of members, and values."""
_STRINGS = re.compile(r'"(?>[^"\\]+|\\.?)*+(?:"|\Z)', re.DOTALL)
"""From every quote it matches, also before a last backslash: otherwise each quote would look at the rest in vain."""
_FEW = 256
"""Marks of most frames, even if those in texts are counted."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may be a lone surrogate, which UTF-8 cannot encode."""


def parse(frame: bytes) -> object:
    """Return a frame's JSON, with all texts encodable in UTF-8.

    Firmware passes on a network's name that is not UTF-8 unchanged, so invalid bytes are replaced and not refused.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    text = frame.decode("utf-8", "replace")
    document: object = _DECODER.decode(text)
    return json.loads(dump(document)) if _SURROGATE.search(text) else document


def dump(document: object) -> bytes:
    """Return compact JSON."""
    return _ENCODER.encode(document).encode("utf-8", "replace")


def pack(value: object) -> str:
    """Return compact JSON as text."""
    return _ENCODER.encode(value)


def json_length(value: object) -> int:
    """Return how many characters a value has as compact JSON."""
    return len(pack(value))


def has_too_many_values(frame: str | bytes) -> bool:
    """Whether a frame holds more than `MOST_VALUES`, told from its marks before it is parsed; never raises."""
    return count_values(frame) > MOST_VALUES


def parsing_cost(frame: str | bytes) -> int:
    """Return what a frame costs, in bytes of text; known before it is parsed, and never raises."""
    return len(frame) + VALUE_BYTES * min(count_values(frame), MOST_VALUES)


def count_values(frame: str | bytes) -> int:
    """Return about how many values a frame holds, told from its marks; more than `MOST_VALUES` are not counted."""
    text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
    marks = _marks(text)
    if marks <= _FEW:
        return marks
    # Marks in texts count for nothing, and texts without end are not looked for: a megabyte of them takes 80 ms.
    rest, texts = _STRINGS.subn("", text, count=_MOST_STRINGS + 1)
    return _marks(rest) if texts <= _MOST_STRINGS else MOST_VALUES + 1


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def is_finite(value: object) -> bool:
    """Whether a JSON value holds no infinity; 1e999 is read as one."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list) or all(map(is_finite, value))


def has_levels(value: object, most: int) -> bool:
    """Whether a JSON value has at most `most` levels of objects and lists; not recursive."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return True
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [part for parts in inner for part in parts if isinstance(part, (dict, list))]
    return not level


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Created once: the functions of `json` create one for every frame."""
