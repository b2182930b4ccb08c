"""Operators: people and programs that prove themselves with a bearer token and may do what its scopes say."""

import asyncio
import logging
import math
from collections import Counter

from fastapi import Request
from starlette.exceptions import HTTPException

from fleet.adapters.files.operator_tokens import Operator, OperatorTokens
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import ConfigError
from fleet.roles.api.refusals import TurnedAway
from fleet.roles.api.throttle import Throttle, site_of

log = logging.getLogger(__name__)

WRONG_TOKENS = Rate(1, 20)
"""Of one address: who mistyped may try again; a token cannot be guessed anyway."""
LONGEST_TOKEN = 200

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="fleet"'}


class Operators:
    """Lets operators in.

    Args:
        tokens: Say who they are.
        throttle: Limits how often an address asks.
        counts: Counts who was not let in.
    """

    def __init__(self, tokens: OperatorTokens, throttle: Throttle, counts: Counter[str]) -> None:
        self._tokens = tokens
        self._throttle = throttle
        self._counts = counts
        self._wrong = Buckets(WRONG_TOKENS)

    def admit(self, request: Request, scope: str) -> Operator:
        """Return who asks, if they may do what the scope allows; to be asked before anything else is done.

        Raises:
            HTTPException: They may not: no or a wrong token (401), another scope (403), too often (429), or nobody's
                token can be checked now (503).
        """
        self._throttle.admit_address("operator", request)
        operator = self._prove(request)
        if scope not in operator.scopes:
            self._counts["operator: scope"] += 1
            log.warning("operator refused", extra={"operator": operator.name, "scope": scope})
            raise HTTPException(403, f"the token has not the scope {scope}")
        return operator

    def _prove(self, request: Request) -> Operator:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            operator = self._tokens.find(token.strip()[:LONGEST_TOKEN]) if scheme.lower() == "bearer" else None
        except ConfigError as error:
            log.error("operator tokens cannot be read", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
            raise TurnedAway("operator: no tokens", 503, "tokens cannot be checked now") from error
        if operator is None:
            self._turn_away(request)
            raise HTTPException(401, "an operator's bearer token is needed", _CHALLENGE | {"Connection": "close"})
        return operator

    def _turn_away(self, request: Request) -> None:
        self._counts["operator: token"] += 1
        wait = self._wrong.take(site_of(request), asyncio.get_running_loop().time())
        if wait:
            retry = {"Retry-After": str(max(1, math.ceil(wait))), "Connection": "close"}
            raise TurnedAway("operator: guesses", 429, "too many wrong tokens from this address", retry)
