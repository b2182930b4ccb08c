"""Operators: people and programs with a bearer token, whose scopes say what they may do."""

import asyncio
import logging
import math
from collections import Counter

from fastapi import Request
from starlette.exceptions import HTTPException

from fleet.adapters.files.operator_tokens import Operator, OperatorTokens
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import ConfigError
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.throttle import Throttle, site_of

log = logging.getLogger(__name__)

WRONG_TOKENS = Rate(1, 20)
"""Of one address: a mistyped token may be tried again. Tokens are too long to be guessed."""
LONGEST_TOKEN = 200

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="fleet"'}


class Operators:
    """Authenticates operators.

    Args:
        tokens: The operators' tokens.
        throttle: Limits requests of an address.
        counts: Counts refusals.
    """

    def __init__(self, tokens: OperatorTokens, throttle: Throttle, counts: Counter[str]) -> None:
        self._tokens = tokens
        self._throttle = throttle
        self._counts = counts
        self._wrong = Buckets(WRONG_TOKENS)

    def admit(self, request: Request, scope: str) -> Operator:
        """Return the operator of a request that has the scope; call this first.

        Raises:
            HTTPException: No token or a wrong one (401), another scope (403), too many requests (429), or tokens cannot
                be checked now (503).
        """
        self._throttle.admit_address("operator", request)
        operator = self._authenticate(request)
        if scope not in operator.scopes:
            self._counts["operator: scope"] += 1
            log.warning("operator refused", extra={"operator": operator.name, "scope": scope})
            raise HTTPException(403, f"the token has not the scope {scope}")
        return operator

    def _authenticate(self, request: Request) -> Operator:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            operator = self._tokens.find(token.strip()[:LONGEST_TOKEN]) if scheme.lower() == "bearer" else None
        except ConfigError as error:
            log.error("operator tokens cannot be read", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
            raise RefusedRequest("operator: no tokens", 503, "tokens cannot be checked now") from error
        if operator is None:
            self._refuse(request)
            raise HTTPException(401, "an operator's bearer token is needed", _CHALLENGE | {"Connection": "close"})
        return operator

    def _refuse(self, request: Request) -> None:
        self._counts["operator: token"] += 1
        wait = self._wrong.take(site_of(request), asyncio.get_running_loop().time())
        if wait:
            retry = {"Retry-After": str(max(1, math.ceil(wait))), "Connection": "close"}
            raise RefusedRequest("operator: guesses", 429, "too many wrong tokens from this address", retry)
