"""Cursors of lists: signed, so that nobody reads or makes a place in a list that is not his."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import Query
from pydantic import JsonValue

from fleet.roles.control.access import Principal
from fleet.roles.control.problems import Problem

Limit = Annotated[int, Query(ge=1, le=500, description="Items of a page.")]
"""The type of an endpoint's parameter that bounds a page."""
Cursor = Annotated[str, Query(max_length=2_000, description="`next` of the page before; empty for the first one.")]
_SIGNATURE = 16


class Cursors:
    """Writes and reads cursors. They hold for one list and one tenant.

    Args:
        key: All processes of control have the same one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, who: Principal, noun: str, place: Sequence[JsonValue]) -> str:
        """Return the cursor of a place in the list of a noun."""
        text = json.dumps(list(place), separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._sign(who, noun, text) + text).decode().rstrip("=")

    def read(self, who: Principal, noun: str, cursor: str) -> list[JsonValue]:
        """Return the place of a cursor; empty for an empty one.

        Raises:
            Problem: The cursor is damaged, or was given for another list (400).
        """
        if not cursor:
            return []
        try:
            found = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except (ValueError, binascii.Error) as error:
            raise _bad() from error
        text = found[_SIGNATURE:]
        if not hmac.compare_digest(self._sign(who, noun, text), found[:_SIGNATURE]):
            raise _bad()
        place: list[JsonValue] = json.loads(text)
        return place

    def _sign(self, who: Principal, noun: str, text: bytes) -> bytes:
        about = f"cursor\n{who.tenant}\n{noun}\n".encode()
        return hmac.new(self._key, about + text, hashlib.sha256).digest()[:_SIGNATURE]


def _bad() -> Problem:
    return Problem(400, "bad-cursor", "this cursor is damaged, or of another list")
