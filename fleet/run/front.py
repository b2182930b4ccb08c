"""Builds a front from the settings."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from fleet.adapters.net.http.readiness import Readiness
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.tls.certificate import followed_certificate
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import bounds
from fleet.ground.metrics import http as metrics
from fleet.ground.settings import Settings
from fleet.ground.tasks import running
from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.listener import Front
from fleet.roles.front.listeners import TlsBinding
from fleet.run.announcement import announced
from fleet.run.resources import follow_debugging, follow_keys, read_keys


@contextmanager
def front_metrics(role: Front) -> Iterator[None]:
    """Export a front's metrics during the block."""
    limits = FrontLimits()
    with (
        metrics.front_events.following(role.counts),
        metrics.front_connections.following(lambda: role.connections),
        bounds.following("front_connections", lambda: role.connections, limits.connections),
        bounds.following("front_strangers", lambda: role.unauthenticated, limits.unauthenticated),
    ):
        yield


@asynccontextmanager
async def front(settings: Settings, readiness: Readiness) -> AsyncIterator[Front]:
    """Run a front during the block; it refuses revoked devices if the settings name Redis.

    Args:
        settings: Of the process.
        readiness: The front adds its requirements.

    Raises:
        ConfigError: FLEET_MQTT_URL, FLEET_KEYS or the port cannot be used.
    """
    if settings.mqtt_url is None or (settings.keys is None and settings.keys_file is None):
        raise ConfigError("the front needs FLEET_MQTT_URL and FLEET_KEYS")
    keys = read_keys(settings)
    broker, host = broker_address(settings.mqtt_url, settings.tls_ca), settings.plain_host(settings.mqtt_host)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        secure = await enter(tls_binding(settings))
        role = Front(host=host, port=settings.mqtt_port, upstream=broker, keys=keys, secure=secure)
        await enter(follow_keys(settings, keys))
        if settings.redis_url is not None:
            store = await Store.open(settings.redis_url, settings.shards, settings.tls_ca)
            stack.push_async_callback(store.close)
            stack.enter_context(readiness.pinging("redis", store.ping))
            await enter(announced(store, "front", readiness))
            access = AccessWatch(store, keys, expel=role.expel)
            # Load revocations before the first connection.
            await access.look()
            await enter(running("access", access.run))
            await enter(follow_debugging(store))
        stack.enter_context(front_metrics(role))
        stack.enter_context(readiness.requiring("listening", role.started.is_set))
        await enter(running("front", role.run))
        await role.started.wait()
        yield role


@asynccontextmanager
async def tls_binding(settings: Settings) -> AsyncIterator[TlsBinding | None]:
    """Give the TLS listener of the settings, or None; follow changes of its certificate during the block.

    Raises:
        ConfigError: The certificate cannot be used.
    """
    async with followed_certificate(settings.tls_cert, settings.tls_key) as certificate:
        yield TlsBinding(settings.mqtt_host, settings.mqtts_port, certificate) if certificate is not None else None
