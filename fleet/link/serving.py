"""HTTP as the settings want it: plain, with TLS, or both."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from fleet.link.http import HttpServer
from fleet.link.https import HttpsServer
from fleet.link.shown import certificate
from fleet.settings import Settings
from fleet.tasks import running


@asynccontextmanager
async def serve(app: FastAPI, settings: Settings) -> AsyncIterator[HttpServer]:
    """Serve an app beside the block, with TLS too if there is a certificate; give the server that devices are told.

    Raises:
        ConfigError: A port or the certificate cannot be used.
    """
    proxies = settings.trusted_proxies
    async with AsyncExitStack() as stack:
        shown = await stack.enter_async_context(certificate(settings))
        server = HttpServer(app, settings.plain_host(settings.http_host), settings.http_port, proxies=proxies)
        await stack.enter_async_context(running("api", server.run))
        if shown is not None:
            server = HttpsServer(app, settings.http_host, settings.https_port, shown, proxies=proxies)
            await stack.enter_async_context(running("api tls", server.run))
        yield server
