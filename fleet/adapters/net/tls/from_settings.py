"""The certificate that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.ground.tasks import running


@asynccontextmanager
async def certificate(chain: Path | None, key: Path | None) -> AsyncIterator[ServerCertificate | None]:
    """Give the server's certificate and follow its files beside the block; None without one.

    Args:
        chain: PEM file with the certificate and those between it and its authority (FLEET_TLS_CERT).
        key: PEM file with its key (FLEET_TLS_KEY).

    Raises:
        ConfigError: The files cannot be used.
    """
    if chain is None or key is None:
        yield None
        return
    found = ServerCertificate(chain, key)
    async with running("certificate", found.run):
        yield found
