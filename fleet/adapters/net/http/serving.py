"""HTTP servers according to the settings: plain, with TLS, or both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from fleet.adapters.net.http.connection import Bounds
from fleet.adapters.net.http.server import HttpServer
from fleet.adapters.net.http.tls_server import MOST_WITH_TLS, HttpsServer
from fleet.adapters.net.tls.certificate import followed_certificate
from fleet.ground.settings.tls import plain_host
from fleet.ground.tasks import running


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """The settings of a server of HTTP."""

    drain_seconds: float
    trusted_proxies: str
    tls_cert: Path | None
    tls_key: Path | None
    https_port: int
    tls_only: bool
    http_host: str
    http_port: int


@asynccontextmanager
async def serve(app: ASGIApp, settings: HttpSettings) -> AsyncIterator[HttpServer]:
    """Serve an app during the block, also with TLS if there is a certificate; yield the server for devices.

    At the block's end running requests are answered first.

    Raises:
        ConfigError: A port or the certificate cannot be used.
    """
    proxies = settings.trusted_proxies
    async with AsyncExitStack() as stack:
        shown = await stack.enter_async_context(followed_certificate(settings.tls_cert, settings.tls_key))
        server = HttpServer(
            app, plain_host(settings.http_host, tls_only=settings.tls_only), settings.http_port, proxies=proxies
        )
        servers = [server]
        await stack.enter_async_context(running("api", server.run))
        if shown is not None:
            # Limits of its own, but shared counters: the metrics show one server.
            bounds = Bounds(connections=MOST_WITH_TLS, counts=server.bounds.counts)
            server = HttpsServer(app, settings.http_host, settings.https_port, shown, bounds=bounds, proxies=proxies)
            servers.append(server)
            await stack.enter_async_context(running("api tls", server.run))
        try:
            yield server
        finally:
            async with asyncio.TaskGroup() as group:
                for one in servers:
                    group.create_task(one.drain(settings.drain_seconds), name=f"drain {one.port}")
