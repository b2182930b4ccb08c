"""Builds a gateway from the settings."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleet.adapters.files import endpoints
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.net.tls.certificate import followed_certificate
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.adapters.tools.load import ServerToolSettings, open_tools
from fleet.core.server_tools import ServerTools
from fleet.ground.errors import ConfigError, FleetError
from fleet.ground.log import LogFormat
from fleet.ground.metrics import bounds
from fleet.ground.metrics import http as metrics
from fleet.ground.settings import Settings
from fleet.ground.settings.gateway import MAX_TOKENS, TEMPERATURE
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.gateway.app import Gateway
from fleet.roles.gateway.registrar.registrar import open_registrar
from fleet.roles.gateway.resources import GatewayResources, ModelTerms
from fleet.roles.gateway.settings import GatewaySettings
from fleet.roles.gateway.voice.door import MOST as MOST_VOICE
from fleet.roles.gateway.voice.door import VoiceDoor
from fleet.run.announcement import announced
from fleet.run.draining import drain_limit
from fleet.run.embedded.redis import EmbeddedRedis
from fleet.run.embedded.supervisor import supervise
from fleet.run.llm import open_models
from fleet.run.monitoring import run_monitoring
from fleet.run.registrar import device_connections
from fleet.run.start_check import chat_models, checking_models

log = logging.getLogger(__name__)


@asynccontextmanager
async def gateway(
    settings: Settings, store: Store, broker: MqttAddress | None, tools: ServerTools | None = None
) -> AsyncIterator[Gateway]:
    """Run a gateway during the block; the block begins when the gateway accepts clients.

    Args:
        settings: Of the process.
        store: Redis.
        broker: Checks the device credentials of JSON-RPC clients; None if no devices are served.
        tools: Server tools that another role of this process has opened; if None, the gateway opens its own.

    Raises:
        ConfigError: There is no chat endpoint, or a port or the certificate cannot be used.
    """
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        models = await enter(open_models(settings, settings.llm_timeout))
        if tools is None:
            tools = await enter(open_tools(slice_of(settings, ServerToolSettings)))
        sessions = GatewaySessions(store, settings.cloud_session_timeout)
        shared = GatewayResources(
            slice_of(settings, GatewaySettings), models, model_terms(settings), tools, sessions, KnownAgents(store)
        )
        connections = await enter(device_connections(settings, store, broker))
        voice = VoiceDoor(store, connections, settings.activation) if connections else None
        registrar = open_registrar(shared, connections.connect if connections else None)
        certificate = await enter(followed_certificate(settings.tls_cert, settings.tls_key))
        role = Gateway(shared, store.ping_writes, registrar, voice, certificate=certificate)
        stack.enter_context(metrics.gateway_connections.following(lambda: role.connections))
        stack.enter_context(metrics.gateway_turned_away.following(role.connection_limits.counts))
        places, passing = settings.cloud_max_connections, role.connection_limits.limits.passing
        stack.enter_context(bounds.following("gateway_clients", lambda: role.connections, places))
        if voice:
            stack.enter_context(bounds.following("gateway_voice_clients", lambda: voice.clients, MOST_VOICE))
        tool_budget, text_budget = shared.tool_budget, shared.text_budget
        stack.enter_context(bounds.following("gateway_tools_characters", lambda: tool_budget.used, tool_budget.limit))
        stack.enter_context(bounds.following("gateway_texts_bytes", lambda: text_budget.used, text_budget.limit))
        stack.enter_context(bounds.following("gateway_passing", lambda: role.connection_limits.passing, passing))
        stack.enter_context(bounds.following("gateway_sessions", lambda: len(sessions.begun), sessions.begun.most))
        await enter(running("gateway", role.run))
        await role.started.wait()
        try:
            yield role
        finally:
            async with drain_limit("gateway", settings.drain_seconds):
                await role.drain(settings.drain_seconds)


async def run_standalone(settings: Settings, while_up: Callable[[], Awaitable[None]]) -> None:
    """Run only a gateway, with FLEET_REDIS_URL, else the Redis of a fleet on this machine, else an embedded Redis.

    Raises:
        ConfigError: A setting is missing or wrong, or the port is taken.
        Unavailable: FLEET_REDIS_URL does not answer.
    """
    async with AsyncExitStack() as stack:
        readiness = await stack.enter_async_context(run_monitoring(settings, "gateway"))
        store = await stack.enter_async_context(_open_store(settings))
        stack.enter_context(readiness.pinging("redis", store.ping_writes))
        await stack.enter_async_context(announced(store, "gateway", readiness))
        broker = broker_address(settings.mqtt_url, settings.tls_ca) if settings.mqtt_url else None
        role = await stack.enter_async_context(gateway(settings, store, broker))
        await stack.enter_async_context(checking_models(*chat_models(settings)))
        stack.enter_context(readiness.requiring("listening", lambda: not role.draining))
        stack.enter_context(readiness.serving())
        log.info("gateway is up", extra={"port": role.port})
        await while_up()


def model_terms(settings: Settings) -> ModelTerms:
    """Return the gateway's request parameters; the API's document has defaults for them, voice devices have none."""
    return ModelTerms(
        TEMPERATURE if settings.llm_temperature is None else settings.llm_temperature,
        MAX_TOKENS if settings.llm_max_tokens is None else settings.llm_max_tokens,
    )


def log_settings(settings: Settings) -> tuple[str, LogFormat]:
    """Return level and format of a gateway's log: from the document's variables, else fleet's; JSON by default."""
    default = settings.log_format if "log_format" in settings.model_fields_set else "json"
    return settings.cloud_log_level or settings.log_level, settings.cloud_log_format or default


@asynccontextmanager
async def _open_store(settings: Settings) -> AsyncIterator[Store]:
    folder = settings.data_dir / "gateway"
    async with AsyncExitStack() as stack:
        if settings.redis_url is not None:
            store = await Store.open(settings.redis_url, settings.shards, settings.tls_ca)
        else:
            store = await _open_existing(settings, settings.data_dir, folder) or await _start_embedded(
                settings, folder, stack
            )
        stack.push_async_callback(store.close)
        yield store


async def _open_existing(settings: Settings, *folders: Path) -> Store | None:
    """Return the Redis of a fleet that runs on this machine with one of these data folders, else None."""
    for folder in folders:
        found = endpoints.find(folder)
        if found is None:
            continue
        try:
            store = await Store.open(found.redis_url, settings.shards)
        except FleetError as error:
            log.info("a stopped fleet left its endpoints file", extra={"folder": str(folder), "reason": str(error)})
            continue
        log.info("using the Redis of the fleet on this machine")
        return store
    return None


async def _start_embedded(settings: Settings, folder: Path, stack: AsyncExitStack) -> Store:
    redis = EmbeddedRedis(folder / "redis")
    try:
        await redis.start()
    except ConfigError:
        # Another gateway started its Redis in this folder first.
        if store := await _open_existing(settings, folder):
            return store
        raise
    await stack.enter_async_context(running("embedded Redis", lambda: supervise("redis", redis)))
    stack.enter_context(endpoints.publish(folder, endpoints.EndpointsFile(redis_url=redis.url, mqtt_url="")))
    return await Store.open(redis.url, settings.shards)
