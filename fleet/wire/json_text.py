"""The JSON of frames: parsed values can be encoded in UTF-8 again, and everything that is not JSON is refused."""

import json
import math
import re

import msgspec

LARGEST_FRAME = 256 * 1024
"""Bytes of the largest frame that is parsed; firmware sends at most 60 KB."""

MOST_VALUES = 20_000
"""Values in a frame of the gateway; 300,000 empty lists take a tenth of a second to parse. A tool's result with more
values is longer than the part that models get."""

VALUE_BYTES = 64
"""Bytes of text that cost as much as one value, for parsing and for checking it as a part of a schema."""

_MOST_STRINGS = 2 * MOST_VALUES
"""Texts in a frame with `MOST_VALUES` values: each value may have a name and be a text."""
_STRINGS = re.compile(r'"(?>[^"\\]+|\\.?)*+(?:"|\Z)', re.DOTALL)
"""Matches at every quote, also at an unfinished text; otherwise each quote would start a scan of the whole rest."""
_FEW = 256
"""Most frames have fewer marks, even with those inside texts."""
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
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError):
        # A lone surrogate, or a number that is longer than 64 bits.
        return _ENCODER.encode(document).encode("utf-8", "replace")


def pack(value: object) -> str:
    """Return compact JSON as text."""
    return _ENCODER.encode(value)


def json_length(value: object) -> int:
    """Return how many characters a value has as compact JSON."""
    return len(pack(value))


def has_too_many_values(frame: str | bytes) -> bool:
    """Whether a frame holds more than `MOST_VALUES`, estimated from its marks without parsing; never raises."""
    return count_values(frame) > MOST_VALUES


def parsing_cost(frame: str | bytes) -> int:
    """Return the cost of parsing a frame, in bytes of text, estimated without parsing; never raises."""
    return len(frame) + VALUE_BYTES * min(count_values(frame), MOST_VALUES)


def count_values(frame: str | bytes) -> int:
    """Return roughly how many values a frame holds: the number of its marks, `,`, `[` and `{`, outside texts.

    Counting stops when it is certain that there are more than `MOST_VALUES`.
    """
    marks = _marks(frame)
    if marks <= _FEW:
        return marks
    text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
    # Marks inside texts do not count. The number of removed texts is bounded: a megabyte of texts takes 80 ms.
    rest, texts = _STRINGS.subn("", text, count=_MOST_STRINGS + 1)
    return _marks(rest) if texts <= _MOST_STRINGS else MOST_VALUES + 1


def _marks(frame: str | bytes) -> int:
    if isinstance(frame, str):
        return frame.count(",") + frame.count("[") + frame.count("{")
    return frame.count(b",") + frame.count(b"[") + frame.count(b"{")


def is_finite(value: object) -> bool:
    """Whether a JSON value holds no infinity; the parser reads 1e999 as one."""
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
