"""`POST /internal/mqtt/auth`: whether a client may connect to a broker that asks over HTTP, as EMQX does.

EMQX takes status 200 with `result` as the answer; on another status, or none, it refuses the client. It keeps
`client_attrs` with the connection: its topic rules and its presence rule need the slot, which they cannot compute.
"""

import hmac
import logging
from collections import Counter

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.ground.errors import ConfigError
from fleet.roles.api.body import read_body
from fleet.wire.identity import CredentialKeys, Kind
from fleet.wire.topics import slot

log = logging.getLogger(__name__)

PATH = "/internal/mqtt/auth"
LARGEST_BODY = 8192
"""Bytes; a client may put 64 KB into each of its three fields, but no genuine one comes near."""

_SHORTEST_TOKEN = 16
_LOG_EACH = 1000


class MqttLoginBody(BaseModel):
    """What EMQX sends of a CONNECT, as `deploy/emqx/emqx.conf` tells it to; what the client left out is empty."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)
    clientid: str
    username: str
    password: str


class MqttLogin:
    """Answers the broker.

    Args:
        keys: Verify credentials.
        token: The broker's bearer token.
        counts: Counts refused logins, and requests without the broker's token.

    Raises:
        ConfigError: The token is shorter than 16 characters.
    """

    def __init__(self, keys: CredentialKeys, token: str, counts: Counter[str]) -> None:
        if len(token) < _SHORTEST_TOKEN:
            raise ConfigError(f"FLEET_BROKER_TOKEN must have at least {_SHORTEST_TOKEN} characters")
        self._keys = keys
        self._token = token.encode()
        self._counts = counts
        self.router = APIRouter()
        self.router.add_api_route(PATH, self.answer, methods=["POST"])

    async def answer(self, request: Request) -> JSONResponse:
        if not self._is_broker(request):
            self._note_stranger()
            return JSONResponse({"error": "the broker's token is needed"}, 401, {"Connection": "close"})
        try:
            login = MqttLoginBody.model_validate_json(await read_body(request, LARGEST_BODY))
        except ValidationError:
            self._counts["mqtt login: malformed"] += 1
            # Not a real client, or the broker does not have our configuration.
            log.warning("malformed mqtt login")
            return JSONResponse({"result": "deny"})
        kind = self._keys.verify(login.clientid, login.username, login.password)
        if kind is None:
            self._counts["mqtt login: refused"] += 1
            log.info("mqtt login refused", extra={"client": login.clientid[:64]})
            return JSONResponse({"result": "deny"})
        return JSONResponse(
            {"result": "allow", "is_superuser": False, "client_attrs": attributes(kind, login.clientid)}
        )

    def _note_stranger(self) -> None:
        self._counts["mqtt login: wrong token"] += 1
        strangers = self._counts["mqtt login: wrong token"]
        # Anybody can send such requests: show a wrong setting to the operator, but do not fill the log.
        if strangers % _LOG_EACH == 1:
            log.warning("mqtt login asked for without the broker's token", extra={"times": strangers})

    def _is_broker(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        # Both compared in any case: the time tells nothing about either.
        return (scheme.lower() == "bearer") & hmac.compare_digest(token.strip().encode(), self._token)


def attributes(kind: Kind, client_id: str) -> dict[str, str]:
    """Return what the broker's rules need of a client; EMQX takes text only."""
    return {"kind": kind, "slot": str(slot(client_id))} if kind == "device" else {"kind": kind}
