"""JSON of clients: only what every program can keep, compare and show again."""

import json
import math
import re
from typing import Any, NoReturn

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape of half a character; two of them make one."""


class UnfitJson(ValueError):
    """It can be read, but it holds a number that is not finite, or half a character."""


def read_json(text: str | bytes) -> Any:
    """Return what a text of JSON says.

    Raises:
        UnfitJson: It holds what cannot be kept.
        ValueError: It is no JSON, or not UTF-8.
        RecursionError: It is nested too deep.
    """
    text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    if _HALF.search(text):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise UnfitJson("it holds half a character (a lone surrogate)") from error
    return found


def _refuse(name: str) -> NoReturn:
    raise UnfitJson(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnfitJson("it holds a number that is too large")
    return number
