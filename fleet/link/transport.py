"""Connections as the settings want them: plain, with TLS, or both."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from fleet.errors import ConfigError
from fleet.link.certificate import ServerCertificate
from fleet.link.http import HttpServer
from fleet.link.https import HttpsServer
from fleet.link.mqtt import tls_context
from fleet.link.mqtt_url import MqttAddress, parse_mqtt_url
from fleet.settings import Settings
from fleet.tasks import running


def broker_address(settings: Settings, url: str) -> MqttAddress:
    """Return the broker's address, with the authorities that it is checked by.

    Raises:
        ConfigError: The URL is wrong, or the file of authorities holds none.
    """
    address = parse_mqtt_url(url, settings.tls_ca)
    if address.tls and address.authorities is not None:
        try:
            tls_context(address.authorities)
        except OSError as error:
            raise ConfigError(f"FLEET_TLS_CA: {address.authorities}: no certificates in PEM") from error
    return address


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
