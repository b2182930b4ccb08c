"""The api's routes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from fleet.adapters.files.operator_tokens import OperatorTokens, tokens_path
from fleet.adapters.files.serials import Serials
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.roles.api.activation import ActivationRoute, ActivationService
from fleet.roles.api.bootstrap import PATHS, Bootstrap
from fleet.roles.api.clips import ClipRoute
from fleet.roles.api.devices import DevicesRoute
from fleet.roles.api.direct import Answer, DirectRoutes
from fleet.roles.api.firmware import Firmware
from fleet.roles.api.health import Health
from fleet.roles.api.mqtt_login import MqttLogin
from fleet.roles.api.operators import Operators
from fleet.roles.api.refusals import Refusals, RefusedRequest
from fleet.roles.api.settings import ApiSettings
from fleet.roles.api.throttle import Throttle
from fleet.roles.api.vision import VisionRoute
from fleet.wire.identity import CredentialKeys

if TYPE_CHECKING:
    from fleet.adapters.llm.vision import OpenAiVision


@dataclass(frozen=True, slots=True)
class Api:
    """The api as an ASGI application."""

    app: ASGIApp
    counts: Counter[str]
    """Refusals."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


def build_app(
    settings: ApiSettings,
    keys: CredentialKeys,
    store: Store,
    vision: "OpenAiVision | None" = None,
) -> Api:
    """Return the api. Its only own state are rate limits, and the counts of refusals.

    Args:
        settings: Of the process.
        keys: Derive passwords, and have the list of revoked devices.
        store: Redis.
        vision: Describes photos; without it devices get an apology.

    Raises:
        ConfigError: The file of serial numbers cannot be read, or the broker's token is too short.
    """
    app = FastAPI(title="fleet", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    throttle, counts = Throttle(settings), Counter[str]()
    activations = ActivationService(settings, store, Serials(settings.serials_file), counts)
    firmware = Firmware(settings, store, throttle)
    operators = Operators(
        OperatorTokens(tokens_path(settings.operator_tokens_file, settings.data_dir)), throttle, counts
    )
    bootstrap = Bootstrap(settings, keys, activations, firmware, throttle)
    for part in (
        bootstrap,
        ActivationRoute(settings, activations, throttle),
        firmware,
        ClipRoute(keys, store, throttle),
        VisionRoute(keys, vision, Devices(store), throttle, counts),
        DevicesRoute(operators, store, throttle),
        Health(store),
    ):
        app.include_router(part.router)
    if settings.broker_token is not None:
        app.include_router(MqttLogin(keys, settings.broker_token.get_secret_value(), counts).router)
    return _surround(app, counts, dict.fromkeys(PATHS, bootstrap.answer))


def _surround(app: FastAPI, counts: Counter[str], direct: Mapping[str, Answer]) -> Api:
    async def refuse(_: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HTTPException):
            return JSONResponse({"error": "the server failed"}, 500)
        if isinstance(error, RefusedRequest):
            counts[error.reason] += 1
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    for kind in (HTTPException, Exception):
        app.add_exception_handler(kind, refuse)
    # Direct answers do not pass FastAPI's own middleware for faults, and uvicorn's answer would be in no count.
    answered = ServerErrorMiddleware(DirectRoutes(app, direct, refuse), handler=refuse)
    return Api(Refusals(answered, counts), counts)
