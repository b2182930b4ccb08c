"""The first token or owner: who reads the one-time code on the console of the server may make it."""

import asyncio
import hmac
import logging
import secrets

from fastapi import Request

from fleet.adapters.sql.account_rows import AccountRows
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.token_rows import TokenRows
from fleet.core.rates import Buckets
from fleet.roles.control.access import WRONG_TOKENS, address_of, too_many
from fleet.roles.control.problems import Problem

log = logging.getLogger(__name__)

LIFE_SECONDS = 3_600.0
MOST_TRIES = 20
_SYMBOLS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_GROUPS, _EACH = 4, 4


class FirstTokenCode:
    """A code of 80 bits that is valid for an hour, for 20 tries, and once.

    It is kept in memory only. Each process of control has one of its own; none counts any more once there is a token or
    an account.
    """

    def __init__(self) -> None:
        self._code = ""
        self._until = 0.0
        self._tries = 0
        self._wrong = Buckets(WRONG_TOKENS)

    async def make(self, database: Database) -> str:
        """Return a code, with hyphens, if there is neither a token nor an account; else an empty text."""
        if await TokenRows(database).any_exist() or await AccountRows(database).any_exist():
            return ""
        self._code = "".join(secrets.choice(_SYMBOLS) for _ in range(_GROUPS * _EACH))
        self._until, self._tries = asyncio.get_running_loop().time() + LIFE_SECONDS, 0
        return "-".join(self._code[at : at + _EACH] for at in range(0, len(self._code), _EACH))

    @property
    def valid(self) -> bool:
        """Whether there is a code that somebody can enter."""
        return bool(self._code) and asyncio.get_running_loop().time() < self._until

    def admit(self, request: Request) -> None:
        """Refuse a request that cannot have the code, before its body is read; every other one counts as a try.

        Raises:
            Problem: There is no code (403), or there were too many tries of this address (429).
        """
        if not self.valid:
            raise wrong_code()
        wait = self._wrong.take(address_of(request), asyncio.get_running_loop().time())
        if wait:
            raise too_many("too many codes from this address", wait)

    def matches(self, text: str) -> bool:
        """Return whether a text is the code; counts a try."""
        if not self.valid:
            return False
        self._tries += 1
        given = "".join(symbol for symbol in text.upper() if symbol.isalnum())
        right = hmac.compare_digest(given.encode(), self._code.encode())
        if not right and self._tries >= MOST_TRIES:
            log.warning("the code for the first token is void: too many wrong ones; restart control for another")
            self._code = ""
        return right

    def spend(self) -> None:
        """Make the code void, because it was used."""
        self._code = ""


def wrong_code() -> Problem:
    """Return the answer for a code that does not count."""
    detail = "this code is wrong, expired or used; control shows one while there is neither a token nor an account"
    return Problem(403, "wrong-code", detail, headers={"Connection": "close"})
