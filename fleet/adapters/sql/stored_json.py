"""JSON of the database, as answers can show it whatever an earlier version kept."""

import json
import re
from typing import Any

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def read_stored(text: str) -> Any:
    """Return what a text of JSON says: null for a number that is not finite, `?` for half a character."""
    found = json.loads(text, parse_constant=lambda _: None)
    if _HALF.search(text):
        found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    return found
