"""Operators of the operators' file that have talked to an agent in their browser: no database knows them."""

from collections.abc import Awaitable
from typing import Final, cast

from fleet.adapters.redis.client.store import Store

_KEY: Final = "{voice}:operators"


class TalkingOperators:
    """Remembers pairs of a token's digest and an operator's name.

    There are no more than the file has tokens: who is no longer in it is removed. All methods raise `Unavailable`
    while Redis does not answer.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, digest: str, name: str) -> None:
        """Remember an operator."""
        await self._store.ask(self._store.client.sadd(_KEY, f"{digest} {name}"))

    async def read(self) -> list[tuple[str, str]]:
        """Return all of them: the digest, and the name."""
        found = await self._store.ask(cast("Awaitable[set[str]]", self._store.client.smembers(_KEY)))
        return [(digest, name) for digest, _, name in (one.partition(" ") for one in found)]

    async def remove(self, digest: str, name: str) -> None:
        """Forget an operator."""
        await self._store.ask(self._store.client.srem(_KEY, f"{digest} {name}"))
