"""How a command reaches control: by FLEET_CONTROL_URL, or the `fleet up` of this machine."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer

from fleet.adapters.files import endpoints
from fleet.adapters.files.local_token import read_local_token
from fleet.client.call import ClientError
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings

Direct = Annotated[
    bool,
    typer.Option(
        "--direct", help="Change Redis itself, without control: for emergencies. Control's database gets an audit line."
    ),
]


@asynccontextmanager
async def open_control(settings: Settings) -> AsyncIterator[AsyncFleetClient]:
    """Connect to control during the block; its refusals become errors of the command.

    Raises:
        ConfigError: No control is known, or it refused something.
        Unavailable: It does not answer.
    """
    async with find_control(settings) as control:
        if control is None:
            missing = "set FLEET_CONTROL_URL and FLEET_CONTROL_TOKEN"
            raise ConfigError(f"{missing}; no `fleet up` runs with its data in {settings.data_dir}")
        yield control


@asynccontextmanager
async def find_control(settings: Settings, *, direct: bool = False) -> AsyncIterator[AsyncFleetClient | None]:
    """Connect to control if one is known; as `open_control`, but give None if none is, or with `direct`."""
    url, token, authority = _address(settings)
    if direct or not url:
        yield None
        return
    if not token:
        raise ConfigError("set FLEET_CONTROL_TOKEN to a token of control")
    async with AsyncFleetClient(url, token, authority) as control:
        try:
            yield control
        except ClientError as error:
            if error.status in (0, 503):
                raise Unavailable(f"{error} ({url}); some commands work without control: --direct") from error
            raise ConfigError(str(error)) from error


def _address(settings: Settings) -> tuple[str, str, Path | None]:
    """Return address, token and authority of control; empty where none is known."""
    if settings.control_url:
        token = settings.control_token.get_secret_value() if settings.control_token else ""
        return settings.control_url, token, settings.tls_ca
    found = endpoints.find(settings.data_dir)
    if found is None or not found.control_url:
        return "", "", None
    return found.control_url, read_local_token(settings.data_dir), found.control_authority
