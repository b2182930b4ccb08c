"""Who a cookie stands for."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from typing import Final, NamedTuple

from fastapi import Request

from fleet.adapters.redis.access.sign_ins import SignIn, SignIns, digest_of_secret
from fleet.adapters.sql.account_rows import AccountRow, AccountRows, SignOuts
from fleet.adapters.sql.transaction import Sql
from fleet.core.permissions import ROLES
from fleet.roles.control.access import Principal, SignedIn, milliseconds
from fleet.roles.control.accounts.cookies import new_secret, session_secret
from fleet.roles.control.accounts.own_page import check_page, check_privacy

LIFE_SECONDS: Final = 7 * 86_400
"""The longest life of a sign-in, even if it is used all the time."""
KEPT_SECONDS: Final = 2.0
"""How long another process of control may accept a sign-in that was ended."""
_MOST_KEPT = 1_000
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class NewSignIn(NamedTuple):
    """A sign-in with its secret, which only its browser gets."""

    secret: str
    sign_in: SignIn


class AccountAccess:
    """Begins, finds and ends sign-ins.

    SQL decides which of them count, so that a change of a password ends them in the transaction of the change, and
    none comes back with an older copy of Redis.

    Args:
        sql: The database.
        sign_ins: Of Redis.
    """

    def __init__(self, sql: Sql, sign_ins: SignIns) -> None:
        self._rows, self._ended, self._sign_ins = AccountRows(sql), SignOuts(sql), sign_ins
        self._kept: OrderedDict[str, tuple[float, Principal]] = OrderedDict()

    async def find(self, request: Request) -> Principal | None:
        """Return the account of a request's cookie; None without a cookie that counts.

        Raises:
            Problem: The cookie must not be used so (403).
            Unavailable: Redis or the database does not answer.
        """
        secret = session_secret(request)
        if not secret:
            return None
        check_privacy(request)
        check_page(request, changes=request.method not in _SAFE)
        digest, now = digest_of_secret(secret), asyncio.get_running_loop().time()
        until, found = self._kept.get(digest, (0.0, None))
        if found is None or until < now:
            found = await self._look(digest)
        if found is None or (found.expires or 0) <= milliseconds():
            self._kept.pop(digest, None)
            return None
        return found

    async def begin(self, account: AccountRow) -> NewSignIn:
        """Begin a sign-in of an account."""
        secret, now = new_secret(), milliseconds()
        sign_in = SignIn(account.id, account.epoch, now, now + LIFE_SECONDS * 1000)
        await self._sign_ins.begin(digest_of_secret(secret), sign_in)
        return NewSignIn(secret, sign_in)

    async def remove(self, digest: str) -> None:
        """Remove a sign-in from Redis."""
        self.forget([digest])
        await self._sign_ins.end(digest)

    def forget(self, digests: Collection[str] = (), account: int = 0) -> None:
        """Ask SQL again for some sign-ins, or for those of an account, because they were ended."""
        kept = {digest: who.sign_in.account for digest, (_, who) in self._kept.items() if who.sign_in is not None}
        gone = [digest for digest, owner in kept.items() if digest in digests or owner == account]
        for digest in gone:
            del self._kept[digest]

    async def ended(self, principals: Collection[Principal]) -> set[Principal]:
        """Return those whose sign-in counts no more."""
        found = {who: who.sign_in for who in principals if who.sign_in is not None}
        if not found:
            return set()
        epochs = await self._rows.epochs({one.account for one in found.values()})
        ended = await self._ended.among({one.digest for one in found.values()})
        return {who for who, one in found.items() if one.digest in ended or epochs.get(one.account) != one.epoch}

    async def _look(self, digest: str) -> Principal | None:
        kept = await self._sign_ins.use(digest)
        account = await self._rows.signed_in(kept.account, kept.epoch, digest) if kept is not None else None
        if kept is None or account is None:
            return None
        sign_in = SignedIn(digest, account.id, account.epoch, account.role, kept.began)
        scopes = ROLES.get(account.role, frozenset())
        found = Principal("account", account.name, account.tenant, scopes, expires=kept.until, sign_in=sign_in)
        self._kept[digest] = asyncio.get_running_loop().time() + KEPT_SECONDS, found
        self._kept.move_to_end(digest)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return found
