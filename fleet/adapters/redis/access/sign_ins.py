"""Sign-ins of operators: what a console's cookie stands for, until nobody has used it for a while."""

import hashlib
from collections.abc import Awaitable
from typing import Final, cast

import msgspec

from fleet.adapters.redis.client.store import Store

IDLE_SECONDS: Final = 2 * 3600
"""A sign-in that nobody uses for so long ends."""


class SignIn(msgspec.Struct, frozen=True):
    """A sign-in. It counts until `until` (ms), while the account has the same epoch."""

    account: int
    epoch: int
    began: int
    until: int


class SignIns:
    """Keeps sign-ins under SHA-256 of their secrets. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, digest: str, sign_in: SignIn) -> None:
        written = self._store.client.set(_key(digest), msgspec.json.encode(sign_in), ex=IDLE_SECONDS)
        await self._store.ask(cast("Awaitable[object]", written))

    async def use(self, digest: str) -> SignIn | None:
        """Return a sign-in that has not ended, and prolong it."""
        found = self._store.client.getex(_key(digest), ex=IDLE_SECONDS)
        text = await self._store.ask(cast("Awaitable[str | None]", found))
        try:
            return msgspec.json.decode(text, type=SignIn) if text else None
        except msgspec.MsgspecError:
            # Of another version: its owner signs in again.
            return None

    async def end(self, digest: str) -> None:
        await self._store.ask(cast("Awaitable[object]", self._store.client.delete(_key(digest))))


def digest_of_secret(secret: str) -> str:
    """Return the name of a sign-in: Redis does not hold the secret itself."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _key(digest: str) -> str:
    return f"sign_in:{digest}"
