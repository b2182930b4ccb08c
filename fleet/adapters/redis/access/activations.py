"""Devices that wait to be bound: their codes and challenges."""

import hashlib
import secrets
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import cast

from pydantic import BaseModel

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import prefix
from fleet.ground.errors import Overloaded

PENDING_SECONDS = 900
"""Seconds that a code is valid after it was last shown."""

MOST_LISTED = 10_000
"""Shown codes that are listed, over all devices."""
_CODES = "{activations}:codes"
"""Sorted set of the shown codes by the time when they expire. It holds no MAC."""
_DIGITS = 6
_ATTEMPTS = 20


class Pending(BaseModel):
    """One device's activation; `code` is empty after an operator entered it, or if none is needed."""

    code: str
    challenge: str
    serial: str


class Activations:
    """Begins activations and finds them again.

    A device is a MAC together with a Client-Id: another client with the same MAC gets a code of its own.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    async def begin(self, mac: str, client: str, serial: str, *, with_code: bool) -> Pending:
        """Return the device's activation: the current one, prolonged, or a new one.

        Raises:
            Overloaded: No free code was found.
        """
        known = await self.read(mac, client)
        if known is not None and bool(known.code) is with_code and await self._prolong(mac, client, known):
            return known
        code = await self._take_code(mac, client) if with_code else ""
        pending = Pending(code=code, challenge=secrets.token_hex(32), serial=serial)
        await self._write(mac, client, pending)
        await self._list(code)
        return pending

    async def read(self, mac: str, client: str) -> Pending | None:
        """Return the current activation, or None."""
        found = self._store.client.get(self._key(mac, client))
        text = await self._store.ask(cast("Awaitable[str | None]", found))
        return Pending.model_validate_json(text) if text else None

    async def codes(self) -> list[tuple[str, str]]:
        """Return MAC and code of each device that shows one, at most of `MOST_LISTED`, the latest ones first.

        A MAC may be there several times, once for each Client-Id.
        """
        now = datetime.now(UTC).timestamp()
        listed = self._store.client.zrangebyscore(_CODES, f"({now:.0f}", "+inf")
        codes = (await self._store.ask(cast("Awaitable[list[str]]", listed)))[::-1]
        pipe = self._store.client.pipeline(transaction=False)
        for code in codes:
            pipe.get(_code_key(code))
        owners = await self._store.ask(cast("Awaitable[list[str | None]]", pipe.execute())) if codes else []
        return [(owner.partition(" ")[0], code) for owner, code in zip(owners, codes, strict=True) if owner]

    async def shown_by(self, code: str) -> str | None:
        """Return the MAC of the device that shows a code; the code stays valid."""
        owner = await self._store.ask(cast("Awaitable[str | None]", self._store.client.get(_code_key(code))))
        return owner.partition(" ")[0] if owner else None

    async def claim(self, code: str) -> tuple[str, str, str] | None:
        """Consume a code; return the MAC, the Client-Id and the serial number of the device that shows it.

        The challenge stays valid, so that the device can still prove itself in its next request.
        """
        claimed = self._store.client.getdel(_code_key(code))
        owner = await self._store.ask(cast("Awaitable[str | None]", claimed))
        if not owner:
            return None
        mac, _, client = owner.partition(" ")
        pending = await self.read(mac, client)
        if pending is None:
            return None
        await self._write(mac, client, pending.model_copy(update={"code": ""}))
        return mac, client, pending.serial

    async def withdraw(self, mac: str) -> None:
        """Make the codes that devices with a MAC show invalid."""
        codes = [code for of, code in await self.codes() if of == mac]
        pipe = self._store.client.pipeline(transaction=False)
        for code in codes:
            pipe.delete(_code_key(code))
            pipe.zrem(_CODES, code)
        if codes:
            await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def _take_code(self, mac: str, client: str) -> str:
        for _ in range(_ATTEMPTS):
            code = f"{secrets.randbelow(10**_DIGITS):0{_DIGITS}}"
            taken = self._store.client.set(_code_key(code), f"{mac} {client}", nx=True, ex=PENDING_SECONDS)
            if await self._store.ask(cast("Awaitable[bool | None]", taken)):
                return code
        raise Overloaded("activation: too many devices wait to be bound")

    async def _list(self, code: str) -> None:
        """Add a code to the bounded list of shown ones, or prolong it there."""
        if not code:
            return
        now = datetime.now(UTC).timestamp()
        pipe = self._store.client.pipeline(transaction=False)
        pipe.zadd(_CODES, {code: now + PENDING_SECONDS})
        pipe.zremrangebyscore(_CODES, "-inf", now)
        pipe.zremrangebyrank(_CODES, 0, -MOST_LISTED - 1)
        pipe.expire(_CODES, PENDING_SECONDS)
        await self._store.ask(cast("Awaitable[list[int]]", pipe.execute()))

    async def _prolong(self, mac: str, client: str, pending: Pending) -> bool:
        """Prolong an activation; return False if it or its code has expired."""
        pipe = self._store.client.pipeline(transaction=False)
        pipe.expire(self._key(mac, client), PENDING_SECONDS)
        if pending.code:
            pipe.expire(_code_key(pending.code), PENDING_SECONDS)
            await self._list(pending.code)
        return all(await self._store.ask(cast("Awaitable[list[int]]", pipe.execute())))

    async def _write(self, mac: str, client: str, pending: Pending) -> None:
        written = self._store.client.set(self._key(mac, client), pending.model_dump_json(), ex=PENDING_SECONDS)
        await self._store.ask(cast("Awaitable[bool]", written))

    def _key(self, mac: str, client: str) -> str:
        who = hashlib.sha256(client.encode(errors="replace")).hexdigest()[:16]
        return f"{prefix(self._store.keys.shard(mac))}act:{mac}:{who}"


def _code_key(code: str) -> str:
    return f"act:{code}"
