"""The JSON of frames: whatever comes in can be said again in UTF-8, and nothing that is not JSON gets through."""

import json
import math
import re

LARGEST_FRAME = 256 * 1024
"""Bytes of the largest frame that is parsed; firmware sends at most 60 KB."""

MOST_VALUES = 20_000
"""Values in a frame of the gateway: 300,000 empty lists take a tenth of a second before anybody looks at them. A result
of so many is longer than models are shown."""

_STRINGS = re.compile(r'"(?>[^"\\]+|\\.)*+(?:"|\Z)', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape that may stand for half a character, which no UTF-8 can carry on."""


def parse(frame: bytes) -> object:
    """Return a frame's JSON with everything in it sayable in UTF-8.

    A network's name that is not UTF-8 comes through firmware as it is, so such bytes are replaced and not refused.

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


def json_length(value: object) -> int:
    """Return how many characters a value has as compact JSON."""
    return len(_ENCODER.encode(value))


def has_too_many_values(frame: str | bytes) -> bool:
    """Whether a frame holds more than `MOST_VALUES`, told from its marks before it is parsed; never raises."""
    text = frame if isinstance(frame, str) else frame.decode("utf-8", "replace")
    # Most frames have few marks even if those in texts are counted.
    return _marks(text) > MOST_VALUES and _marks(_STRINGS.sub("", text)) > MOST_VALUES


def _marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def is_finite(value: object) -> bool:
    """Whether a JSON value holds no infinity, as which 1e999 is read."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return not isinstance(value, list) or all(map(is_finite, value))


def has_levels(value: object, most: int) -> bool:
    """Whether a JSON value has at most so many levels of objects and lists; looks at one level after the other."""
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
"""Made once: the functions of `json` make one for every frame."""
