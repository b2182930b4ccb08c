"""Wrong passwords: how many are answered, so that none is guessed and nobody is locked out permanently.

A try counts before its password is checked, so that tries at the same time do not pass together.
"""

import asyncio
from typing import Final

from fastapi import Request

from fleet.core.rates import Buckets, Rate
from fleet.roles.control.access import address_of, too_many
from fleet.roles.control.accounts.own_page import is_local

OF_ADDRESS: Final = Rate(1 / 3, 20)
"""Tries of one address, for all accounts."""
OF_BROWSER: Final = Rate(1 / 30, 10)
"""Tries of a browser that signed in before. What others do does not count for it."""
OF_PAIR: Final = Rate(1 / 60, 5)
"""Tries of one address for one account."""
OF_ACCOUNT: Final = Rate(1 / 20, 50)
"""Tries of all strangers for one account."""


class SignInLimits:
    """Counts the tries of one process of control, for accounts that do not exist, too."""

    def __init__(self) -> None:
        self._address, self._browser = Buckets(OF_ADDRESS), Buckets(OF_BROWSER)
        self._pair, self._account = Buckets(OF_PAIR), Buckets(OF_ACCOUNT)

    def begin(self, request: Request, browser: str) -> "SignInTry":
        """Count a try before it is known for which account.

        Args:
            request: The request.
            browser: The number of a browser that signed in before; empty for a stranger.

        Raises:
            Problem: There were too many (429).
        """
        begun = SignInTry()
        begun.take(self._browser if browser else self._address, browser or address_of(request))
        return begun

    def name(self, begun: "SignInTry", request: Request, account: str) -> None:
        """Count the try of a stranger for an account.

        Raises:
            Problem: There were too many (429).
        """
        begun.take(self._pair, f"{address_of(request)} {account}")
        if not is_local(request):
            # Whoever is on this machine is not locked out by the rest of the world.
            begun.take(self._account, account)


class SignInTry:
    """One try: what it took."""

    def __init__(self) -> None:
        self._taken: list[tuple[Buckets, str]] = []

    def take(self, buckets: Buckets, key: str) -> None:
        wait = buckets.take(key, asyncio.get_running_loop().time())
        if wait:
            raise too_many("too many wrong passwords; wait, or sign in where you have signed in before", wait)
        self._taken.append((buckets, key))

    def succeeded(self) -> None:
        """Count the try no more: its password was right."""
        for buckets, key in self._taken:
            buckets.give_back(key, asyncio.get_running_loop().time())
