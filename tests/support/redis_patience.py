"""More time for the clients with which tests themselves ask Redis: the library gives an answer five seconds."""

from typing import Any

import pytest
from redis.connection import AbstractConnection

_USUAL, _PATIENCE = 5, 240.0


def await_redis(patch: pytest.MonkeyPatch) -> None:
    """Let clients without a limit of their own wait as long as tests do. Roles have other clients."""
    make = AbstractConnection.__init__

    def make_patiently(connection: AbstractConnection, *values: Any, **named: Any) -> None:
        for limit in ("socket_timeout", "socket_connect_timeout"):
            if named.get(limit, _USUAL) == _USUAL:
                named[limit] = _PATIENCE
        make(connection, *values, **named)

    patch.setattr(AbstractConnection, "__init__", make_patiently)
