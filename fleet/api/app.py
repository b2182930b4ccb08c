"""The api's routes."""

from collections import Counter
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fleet.api.activation import ActivationRoute, Desk
from fleet.api.bootstrap import Bootstrap
from fleet.api.devices import DevicesRoute
from fleet.api.firmware import Firmware
from fleet.api.headers import TitledHeaders
from fleet.api.health import Health
from fleet.api.mqtt_login import MqttLogin
from fleet.api.operators import Operators
from fleet.api.refusals import Refusals, TurnedAway
from fleet.api.throttle import Throttle
from fleet.api.vision import VisionRoute
from fleet.settings import Settings
from fleet.store.connect import Store
from fleet.store.devices import Devices
from fleet.store.firmware_shelf import FirmwareShelf
from fleet.store.operator_tokens import OperatorTokens, tokens_path
from fleet.store.serials import Serials
from fleet.wire.identity import Keys

if TYPE_CHECKING:
    from fleet.llm.vision import OpenAiVision


def build_app(
    settings: Settings,
    keys: Keys,
    store: Store,
    shelf: FirmwareShelf | None = None,
    vision: "OpenAiVision | None" = None,
) -> FastAPI:
    """Return the api; it holds no state of its own but how often who asked.

    `state.counts` has its refusals.

    Args:
        settings: Of the process.
        keys: Derive passwords, and know who is revoked.
        store: Redis.
        shelf: The firmware, kept up to date by who made it; without it none is offered.
        vision: Sees what is on photos; without it devices are told that nobody does.

    Raises:
        ConfigError: The file of serial numbers cannot be read, or the broker's token is too short.
    """
    app = FastAPI(title="fleet", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    throttle, counts = Throttle(settings), Counter[str]()
    desk = Desk(settings, store, Serials(settings.serials_file), counts)
    firmware = Firmware(shelf or FirmwareShelf(None), store, throttle, counts)
    operators = Operators(OperatorTokens(tokens_path(settings)), throttle, counts)
    for part in (
        Bootstrap(settings, keys, desk, firmware, throttle),
        ActivationRoute(settings, desk, throttle),
        firmware,
        VisionRoute(keys, vision, Devices(store), throttle, counts),
        DevicesRoute(operators, store, throttle),
        Health(store),
    ):
        app.include_router(part.router)
    if settings.broker_token is not None:
        app.include_router(MqttLogin(keys, settings.broker_token.get_secret_value(), counts).router)
    _surround(app, counts)
    return app


def _surround(app: FastAPI, counts: Counter[str]) -> None:
    app.state.counts = counts

    async def refuse(_: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HTTPException):
            return JSONResponse({"error": "the server failed"}, 500)
        if isinstance(error, TurnedAway):
            counts[error.reason] += 1
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    app.add_exception_handler(HTTPException, refuse)
    app.add_middleware(TitledHeaders)
    app.add_middleware(Refusals, counts=counts)
