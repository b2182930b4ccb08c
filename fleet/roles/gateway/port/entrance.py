"""Decide who may open a WebSocket: by origin, token and address, right after the request was read."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from urllib.parse import parse_qs

from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from fleet.adapters.files.operator_tokens import GATEWAY_CONNECT, OperatorTokens, tokens_path
from fleet.adapters.redis.access.voice_tickets import VoiceTicket
from fleet.core.origins import Origins
from fleet.core.proxies import Proxies, site
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import ConfigError, Unavailable
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from fleet.roles.gateway.settings import GatewaySettings

log = logging.getLogger(__name__)

PROTOCOL = Subprotocol("fleet.gateway")
"""Subprotocol for pages, which cannot set headers. A page offers it, and the token as a second one; the gateway selects
this one."""
TOKEN_PREFIX = "fleet.token."  # noqa: S105 - not one
WRONG_TOKENS = Rate(1, 20)
"""Rate of wrong tokens from one address."""
LONGEST_TOKEN = 200
SHARE = 4
"""By default one address may take a quarter of the places, but always `LEAST_SHARE`."""
LEAST_SHARE = 10
_MOST_FIELDS = 32

_CHALLENGE = (("WWW-Authenticate", 'Bearer realm="fleet"'),)


class AccessCheck:
    """Admits clients.

    Args:
        settings: The rules for admission.
    """

    def __init__(self, settings: GatewaySettings) -> None:
        self._each = settings.gateway_each
        self._proxies = Proxies(settings.trusted_proxies)
        self._origins = Origins(settings.gateway_origins)
        self._tokens = (
            OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir))
            if settings.gateway_tokens
            else None
        )
        self._wrong = Buckets(WRONG_TOKENS)

    def admit(self, connection: LimitedConnection, request: Request) -> Response | None:
        """Return the HTTP error for a request for a WebSocket; None if the client is admitted."""
        headers = request.headers
        host = self._locate(connection, request)
        for origin in headers.get_all("Origin"):
            if not self._origins.admits(origin, host):
                log.warning(
                    "page refused, see FLEET_GATEWAY_ORIGINS", extra={"origin": origin[:200], "host": host[:200]}
                )
                return _turn_away(connection, "origin", HTTPStatus.FORBIDDEN, "pages of this origin may not come in")
        return None if self._tokens is None else self._identify(self._tokens, connection, request)

    async def admit_voice(
        self,
        connection: LimitedConnection,
        request: Request,
        take_ticket: Callable[[Request], Awaitable[VoiceTicket | None]],
    ) -> Response | None:
        """Return the HTTP error for a request of a voice client; None if its ticket is valid.

        A page of any origin may come in: it has a ticket only from who may speak to devices.
        """
        self._locate(connection, request)
        try:
            connection.ticket = await take_ticket(request)
        except Unavailable:
            unavailable = HTTPStatus.SERVICE_UNAVAILABLE
            return _turn_away(connection, "no tokens", unavailable, "tickets cannot be checked now")
        if connection.ticket is None:
            return self._turn_guesser_away(connection, "a ticket of /v1/talks is needed")
        return None

    def share(self, connection: LimitedConnection, places: int) -> int:
        """Return how many of a gateway's places the address of a connection may take.

        A trusted proxy that does not forward the clients' addresses may take all places.
        """
        if self._each is not None:
            return self._each
        return places if self._proxies.trusts(connection.address) else max(LEAST_SHARE, places // SHARE)

    def remembers(self, connection: LimitedConnection) -> bool:
        """Whether an admitted client may stay: its token has not been revoked."""
        if self._tokens is None or connection.operator is None:
            return True
        try:
            return connection.operator in self._tokens.read()
        except ConfigError:
            return False

    def _locate(self, connection: LimitedConnection, request: Request) -> str:
        """Note the client's address, which a trusted proxy tells; return the host that the client asked for."""
        headers, peer = request.headers, connection.address
        host = ",".join(headers.get_all("Host"))
        if self._proxies.trusts(peer):
            connection.address = self._proxies.client(peer, headers.get_all("X-Forwarded-For"))
            host = headers.get_all("X-Forwarded-Host")[-1] if "X-Forwarded-Host" in headers else host
        return host

    def _identify(self, tokens: OperatorTokens, connection: LimitedConnection, request: Request) -> Response | None:
        try:
            operator = tokens.find(_token(request)[:LONGEST_TOKEN])
        except ConfigError as error:
            log.error("operator tokens cannot be read", extra={"reason": str(error)})  # noqa: TRY400 - not a crash
            unavailable = HTTPStatus.SERVICE_UNAVAILABLE
            return _turn_away(connection, "no tokens", unavailable, "tokens cannot be checked now")
        if operator is None:
            return self._turn_guesser_away(connection)
        if GATEWAY_CONNECT not in operator.scopes:
            log.warning("client refused", extra={"operator": operator.name, "scope": GATEWAY_CONNECT})
            reason = f"the token has not the scope {GATEWAY_CONNECT}"
            return _turn_away(connection, "scope", HTTPStatus.FORBIDDEN, reason)
        connection.operator = operator
        return None

    def _turn_guesser_away(
        self, connection: LimitedConnection, needed: str = "a token with the scope gateway:connect is needed"
    ) -> Response:
        wait = self._wrong.take(site(connection.address), asyncio.get_running_loop().time())
        if wait:
            later = ("Retry-After", str(max(1, math.ceil(wait))))
            often = HTTPStatus.TOO_MANY_REQUESTS
            return _turn_away(connection, "guesses", often, "too many wrong tokens from this address", later)
        return _turn_away(connection, "token", HTTPStatus.UNAUTHORIZED, needed, *_CHALLENGE)


def agree(offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Return the selected one of the subprotocols that a client offers."""
    return PROTOCOL if PROTOCOL in offered else None


def _token(request: Request) -> str:
    """Return the token in a request's header, subprotocols or URL; empty if there is none."""
    for value in request.headers.get_all("Authorization"):
        scheme, _, token = value.partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
    for value in request.headers.get_all("Sec-WebSocket-Protocol"):
        for word in value.split(","):
            if word.strip().startswith(TOKEN_PREFIX):
                return word.strip().removeprefix(TOKEN_PREFIX)
    try:
        return parse_qs(request.path.partition("?")[2], max_num_fields=_MOST_FIELDS).get("token", [""])[0]
    except ValueError:
        return ""


def _turn_away(
    connection: LimitedConnection, reason: str, status: HTTPStatus, words: str, *more: tuple[str, str]
) -> Response:
    connection.connection_limits.counts[reason] += 1
    body = f"{words}\n".encode()
    headers = Headers([("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *more])
    headers["Connection"] = "close"
    return Response(int(status), status.phrase, headers, body)
