"""The authorities that a simulated device trusts over HTTPS.

Every request of a device, also inside its tools, must trust the same authorities; so they are in the context that its
tasks inherit. Those for MQTT are passed as an argument.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import httpx2

from fleet.adapters.http_client import public_trust
from fleet.ground.errors import ConfigError

_TRUSTED: ContextVar[ssl.SSLContext | None] = ContextVar("trusted", default=None)


def load_trust(authorities: Path | None) -> ssl.SSLContext | None:
    """Return the trust in the authorities of a PEM file alone; None, the public ones, without a file.

    Raises:
        ConfigError: It cannot be read or holds none.
    """
    if authorities is None:
        return None
    try:
        return ssl.create_default_context(cafile=authorities)
    except ssl.SSLError as error:
        raise ConfigError(f"{authorities}: no certificates in PEM") from error
    except OSError as error:
        raise ConfigError(f"{authorities}: {error.strerror}") from error


@contextmanager
def trusting(tls: ssl.SSLContext | None) -> Iterator[None]:
    """Let HTTPS requests of this block, and of tasks started in it, trust `tls`; None changes nothing."""
    if tls is None:
        yield
        return
    token = _TRUSTED.set(tls)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def trust() -> ssl.SSLContext:
    """Return what the present task trusts."""
    return _TRUSTED.get() or public_trust(trust_env=False)


def web(seconds: float) -> httpx2.AsyncClient:
    """Return a client as firmware is one: it follows no redirect and knows no proxy.

    Args:
        seconds: Longest wait for each step of a request.
    """
    return httpx2.AsyncClient(timeout=seconds, follow_redirects=False, trust_env=False, verify=trust())
