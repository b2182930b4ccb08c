"""Who sends a request, and what he may do."""

import asyncio
import hashlib
import logging
import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Protocol

from fastapi import Depends, Request

from fleet.adapters.files.local_token import is_local_token
from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.adapters.sql.token_rows import FIRST_TENANT, USE_MS, TokenRow, TokenRows
from fleet.core.permissions import EVERY_SCOPE
from fleet.core.proxies import site
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import ConfigError, Unavailable
from fleet.roles.control.problems import Problem

log = logging.getLogger(__name__)

WRONG_TOKENS = Rate(1, 20)
"""Of one address: a mistyped token may be tried again. Tokens are too long to be guessed."""
KEPT_SECONDS = 2.0
"""How long another process of control may accept a token that was revoked."""
NOTE_SECONDS = 5.0
_MOST_KEPT = 1_000
_LONGEST_TOKEN = 200
ANY_SCOPE: Final = "*"
"""The scope of a route that every valid token may use."""
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="fleet"', "Connection": "close"}


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A sign-in of an account that counts; `digest` names it, `began` is in ms since 1970."""

    digest: str
    account: int
    epoch: int
    role: str
    began: int


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sends a request.

    `token` is the id of the token in SQL, 0 without one; `expires`, in ms since 1970, that of the token or sign-in;
    `digest` that of a token in the operators' file.
    """

    kind: Literal["token", "operator", "account"]
    name: str
    tenant: int
    scopes: frozenset[str]
    token: int = 0
    expires: int | None = None
    sign_in: SignedIn | None = None
    digest: str = ""

    @property
    def actor(self) -> str:
        """The name in the audit log."""
        return f"{self.kind}:{self.name}"


class Cookies(Protocol):
    """Finds the account of the cookie of a request."""

    async def find(self, request: Request) -> Principal | None:
        """Return who sends a request, if it has a cookie that counts.

        Raises:
            Problem: The cookie must not be used so.
        """
        ...


class TokenAccess:
    """Authenticates the tokens of SQL, and those of the operators' file, which also work while SQL is away.

    A request without a token may have the cookie of a sign-in.

    Args:
        tokens: Of SQL.
        operators: Of the file.
        cookies: Of the accounts.
        rate: Requests of one token or account.
        local_token: Of commands on this machine; empty for none.
    """

    def __init__(
        self, tokens: TokenRows, operators: OperatorTokens, cookies: Cookies, rate: Rate, local_token: str = ""
    ) -> None:
        self._tokens, self._operators, self._local = tokens, operators, local_token
        self._cookies = cookies
        self._rate, self._buckets = rate, Buckets(rate)
        self._wrong = Buckets(WRONG_TOKENS)
        self._kept: OrderedDict[str, tuple[float, TokenRow]] = OrderedDict()
        self._used: dict[int, int] = {}
        """When tokens were used that nobody noted yet, in ms; bounded by the number of tokens."""

    async def admit(self, request: Request, scope: str) -> Principal:
        """Return who sends a request, if he has the scope.

        Raises:
            Problem: No token or a wrong one (401), another scope (403), too many requests (429), or tokens cannot be
                checked now (503).
        """
        principal = await self._authenticate(request)
        if scope not in (ANY_SCOPE, *principal.scopes):
            log.warning("request refused", extra={"actor": principal.actor, "scope": scope})
            raise Problem(403, "scope-missing", f"the {principal.kind} has not the scope {scope}")
        wait = self._buckets.take(_bucket(principal), _clock())
        if wait:
            raise too_many("too many requests of this token", wait)
        return principal

    def limits(self, principal: Principal) -> dict[str, str]:
        """Return the headers that say how many requests a token may still send."""
        window = max(1, round(self._rate.burst / self._rate.per_second))
        left = max(0, self._buckets.left(_bucket(principal), _clock()))
        full = math.ceil((self._rate.burst - left) / self._rate.per_second)
        return {
            "RateLimit-Policy": f'"token";q={self._rate.burst};w={window}',
            "RateLimit": f'"token";r={left};t={full}',
        }

    async def run(self) -> None:
        """Note the uses of tokens until cancelled: requests do not wait for it."""
        while True:
            await asyncio.sleep(NOTE_SECONDS)
            await self.note_uses()

    async def note_uses(self) -> None:
        """Write the last uses of tokens."""
        used, self._used = self._used, {}
        try:
            for token, at in used.items():
                await self._tokens.used(token, at)
        except Unavailable as error:
            log.warning("uses of tokens were not noted", extra={"reason": str(error)})

    def forget(self, token: int) -> None:
        """Ask SQL again for a token, because it was revoked."""
        for digest in [digest for digest, (_, row) in self._kept.items() if row.id == token]:
            del self._kept[digest]

    async def _authenticate(self, request: Request) -> Principal:
        named = request.headers.get("authorization")
        if named is None and (account := await self._cookies.find(request)) is not None:
            return account
        scheme, _, text = (named or "").partition(" ")
        token = text.strip()[:_LONGEST_TOKEN] if scheme.lower() == "bearer" else ""
        found = (self._operator(token) or await self._token(token)) if token else None
        if found is None:
            # Only wrong tokens count: many clients send a first request without one, to see the 401.
            wait = self._wrong.take(address_of(request), _clock()) if token else 0.0
            if wait:
                raise too_many("too many wrong tokens from this address", wait)
            raise token_needed()
        return found

    def _operator(self, token: str) -> Principal | None:
        if is_local_token(token, self._local):
            return Principal("operator", "local", FIRST_TENANT, EVERY_SCOPE)
        try:
            found = self._operators.find(token)
        except ConfigError as error:
            # The tokens of SQL still count: only those of the file are refused.
            log.error("operator tokens cannot be read", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
            return None
        if found is None:
            return None
        return Principal("operator", found.name, FIRST_TENANT, found.scopes & EVERY_SCOPE, digest=found.digest)

    async def _token(self, token: str) -> Principal | None:
        digest, now = digest_of_token(token), _clock()
        until, row = self._kept.get(digest, (0.0, None))
        if row is None or until < now:
            row = await self._look(digest)
        if row is None or (row.expires is not None and row.expires <= milliseconds()):
            self._kept.pop(digest, None)
            return None
        return Principal("token", row.name, row.tenant, row.scopes, row.id, row.expires)

    async def _look(self, digest: str) -> TokenRow | None:
        at = milliseconds()
        row = await self._tokens.by_digest(digest, at)
        if row is None:
            return None
        self._kept[digest] = _clock() + KEPT_SECONDS, row
        self._kept.move_to_end(digest)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        if row.last_used is None or row.last_used <= at - USE_MS:
            self._used[row.id] = at
        return row


def _bucket(principal: Principal) -> str:
    return f"{principal.tenant} {principal.actor}"


def token_needed() -> Problem:
    """Return the answer for a request without a token or sign-in that counts."""
    return Problem(401, "token-needed", "sign in, or send a valid bearer token", headers=_CHALLENGE)


def too_many(detail: str, wait: float) -> Problem:
    """Return the answer for a request that comes too early.

    Args:
        detail: What there are too many of.
        wait: Seconds until the next one is accepted.
    """
    return Problem(429, "too-many-requests", detail, headers={"Retry-After": str(max(1, math.ceil(wait)))})


def principal_of(request: Request) -> Principal:
    """Return who sends a request that was admitted."""
    found = request.state.principal
    assert isinstance(found, Principal)  # noqa: S101 - for the type checker
    return found


async def _who(request: Request) -> Principal:
    # Async, for FastAPI calls other functions in a thread.
    return principal_of(request)


Who = Annotated[Principal, Depends(_who)]
"""The type of an endpoint's parameter that gets the principal."""


def address_of(request: Request) -> str:
    """Return the address that is limited as one."""
    return site(source_of(request))[:64]


def source_of(request: Request) -> str:
    """Return the address of the client, which a trusted proxy may have named."""
    return (request.client.host if request.client else "")[:64]


def digest_of_token(token: str) -> str:
    """Return SHA-256 of a token, in hex: it has 256 random bits, so a slower hash is not needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def milliseconds() -> int:
    """Return the time since 1970."""
    return int(datetime.now(UTC).timestamp() * 1000)


def _clock() -> float:
    return asyncio.get_running_loop().time()
