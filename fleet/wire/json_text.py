"""The JSON of frames: whatever comes in can be said again in UTF-8, and nothing that is not JSON gets through."""

import json
import re

LARGEST_FRAME = 256 * 1024
"""Bytes of the largest frame that is parsed; firmware sends at most 60 KB."""

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


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Made once: the functions of `json` make one for every frame."""
