"""The certificate that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.ground.settings import Settings
from fleet.ground.tasks import running


@asynccontextmanager
async def certificate(settings: Settings) -> AsyncIterator[ServerCertificate | None]:
    """Give the server's certificate and follow its files beside the block; None without one.

    Raises:
        ConfigError: The files cannot be used.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        yield None
        return
    found = ServerCertificate(settings.tls_cert, settings.tls_key)
    async with running("certificate", found.run):
        yield found
