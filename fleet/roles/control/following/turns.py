"""Places that tenants, and the tokens of each tenant, get in turn."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.roles.control.access import Principal

_Token = tuple[int, str, str]
_Waiting = dict[_Token, deque["asyncio.Future[None]"]]


class Turns:
    """Gives places; a place that gets free goes to the tenant that waits since the longest time for its turn.

    Args:
        places: How many may be taken at a time.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: dict[int, _Waiting] = {}

    @asynccontextmanager
    async def taken(self, who: Principal) -> AsyncIterator[None]:
        """Have a place during the block."""
        if self._free:
            self._free -= 1
        else:
            await self._turn(who)
        try:
            yield
        finally:
            self._pass_on()

    async def _turn(self, who: Principal) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tokens = self._waiting.setdefault(who.tenant, {})
        tokens.setdefault((who.token, who.kind, who.name), deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        """Give a place to the next one that still waits."""
        while self._waiting:
            turn = self._next()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _next(self) -> "asyncio.Future[None]":
        """Return the client that is first; its token and its tenant go to the end of their lines."""
        tenant, tokens = next(iter(self._waiting.items()))
        token, line = next(iter(tokens.items()))
        turn = line.popleft()
        del self._waiting[tenant], tokens[token]
        if line:
            tokens[token] = line
        if tokens:
            self._waiting[tenant] = tokens
        return turn
