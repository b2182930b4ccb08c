"""`fleet up`: runs all roles in one process, with embedded servers in place of those that the settings do not name."""

import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import NamedTuple

from pydantic import SecretStr

from fleet.adapters.files import endpoints
from fleet.adapters.files.keys_file import keys_path, load_or_make_secret_keys
from fleet.adapters.net.mqtt.broker import broker_address
from fleet.adapters.net.own_address import ota_url
from fleet.adapters.redis.access.watch import AccessWatch
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.client.url import parse_redis_url
from fleet.adapters.tools.load import ServerToolSettings, open_tools
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import audio, bounds
from fleet.ground.settings import Settings, variable
from fleet.ground.settings.fields import ANY_ADDRESS
from fleet.ground.settings.slices import slice_of
from fleet.ground.settings.stored import store as store_settings
from fleet.ground.tasks import running
from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.listener import Front
from fleet.roles.worker.app import Worker
from fleet.run.announcement import announced
from fleet.run.api import api
from fleet.run.control import control_url, keeping_control, private_authority
from fleet.run.edge import edge
from fleet.run.embedded.broker import EmbeddedBroker
from fleet.run.embedded.broker_restarter import LARGEST_MEMORY, MOST_DEVICES, BrokerRestarter
from fleet.run.embedded.redis import EmbeddedRedis
from fleet.run.embedded.supervisor import supervise
from fleet.run.front import front_metrics, tls_binding
from fleet.run.gateway import gateway
from fleet.run.listeners_table import listeners
from fleet.run.monitoring import run_monitoring
from fleet.run.public_address import read_address
from fleet.run.resources import ProcessResources, follow_debugging, follow_keys, read_keys
from fleet.run.speech import load_speech
from fleet.run.start_panel import StartPanel
from fleet.run.worker import worker
from fleet.wire.identity import CredentialKeys
from fleet.workbench.demo_llm.server import DemoLlmServer

log = logging.getLogger(__name__)

_LOOPBACK = "127.0.0.1"
_SPARED = ("metrics_port", "control_port")


async def up(
    settings: Settings, while_up: Callable[[], Awaitable[None]], show: Callable[[str], None] = lambda _: None
) -> None:
    """Start everything, then await `while_up`; at its end, or when cancelled, stop everything in reverse order.

    Args:
        settings: Of the process.
        while_up: Awaited when everything is ready.
        show: Called with the panel: addresses, models, listening ports.

    Raises:
        ConfigError: A port is taken, a package is missing, or a setting is wrong.
        Unavailable: A broker or Redis that the settings name does not answer.
    """
    public = read_address(settings.udp_public) if settings.udp_public else None
    panel, workers = StartPanel(settings, show, demo=_needs_demo_model(settings)), list[Worker]()
    settings = _checked(_with_local_metrics(settings))
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        readiness = await enter(run_monitoring(settings, "up"))
        with _naming_running_fleet(settings):
            redis_url = settings.redis_url if settings.redis_url else await enter(_embedded_redis(settings))
        # Do not drain: no other process takes over, and the user waits after Ctrl-C.
        settings = _with_keys(settings).model_copy(update={"drain_seconds": 0.0})
        keys = read_keys(settings)
        await enter(follow_keys(settings, keys))
        store = await Store.open(redis_url, settings.shards, settings.tls_ca)
        stack.push_async_callback(store.close)
        await enter(follow_debugging(store))
        stack.enter_context(readiness.pinging("redis", store.ping_writes))
        broker_url = await enter(_broker(settings, keys, store, workers))
        settings = await enter(_with_model(settings))
        stack.enter_context(endpoints.publish(settings.data_dir, _endpoints(settings, redis_url, broker_url)))
        resources = ProcessResources(settings, keys, broker_address(broker_url, settings.tls_ca), store, readiness)
        await enter(announced(store, "up", readiness, resources.broker))
        kept = await enter(keeping_control(resources, panel.offer_code))
        log.info("loading speech")
        speech = await load_speech(settings)
        await enter(edge(resources, speech, public=public))
        tools = await enter(open_tools(slice_of(settings, ServerToolSettings)))
        workers.append(await enter(worker(resources, tools)))
        server = await enter(api(resources))
        await enter(gateway(settings, store, resources.broker, tools))
        await kept.tried.wait()
        stack.enter_context(readiness.serving())
        ota = ota_url(settings.public_host, settings.http_host, server.port, tls=settings.tls_cert is not None)
        await enter(panel.shown(ota, _console_url(settings, kept.port), listeners(settings, server.port, kept.port)))
        log.info("fleet is up", extra={"ota": ota})
        await while_up()


@asynccontextmanager
async def _embedded_redis(settings: Settings) -> AsyncIterator[str]:
    redis = EmbeddedRedis(settings.data_dir / "redis")
    await redis.start()
    async with running("embedded Redis", lambda: supervise("redis", redis)):
        yield redis.url


@asynccontextmanager
async def _broker(
    settings: Settings, keys: CredentialKeys, store: Store, workers: Sequence[Worker]
) -> AsyncIterator[str]:
    """Give the URL of the broker: the one of the settings, or an embedded one that runs with a front during the block.

    The embedded one forgets its sessions when it ends: what a device sends before a worker has subscribed is lost, its
    presence too. So devices wait for the workers, of which `workers` may get the first one during the block.
    """
    if settings.mqtt_url:
        yield settings.mqtt_url
        return
    broker = EmbeddedBroker(settings.data_dir / "broker")
    await broker.start()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        secure, host = await enter(tls_binding(settings)), settings.plain_host(settings.mqtt_host)
        limits = FrontLimits(devices=MOST_DEVICES)
        front = Front(
            host=host,
            port=settings.mqtt_port,
            upstream=broker.url,
            keys=keys,
            limits=limits,
            secure=secure,
            is_read=lambda: any(one.settled for one in workers),
        )
        access = AccessWatch(store, keys, expel=front.expel)
        # Load revocations before the first connection.
        await access.look()
        await enter(running("embedded broker", lambda: supervise("broker", broker)))
        stack.enter_context(front_metrics(front))
        restarter = BrokerRestarter(broker, lambda: front.admission.admitted, _no_sessions, front.admission.reset)
        stack.enter_context(bounds.following("broker_devices", lambda: front.admission.admitted, MOST_DEVICES))
        stack.enter_context(bounds.following("broker_memory_bytes", lambda: restarter.memory, LARGEST_MEMORY))
        await enter(running("embedded broker's memory", restarter.run))
        await enter(running("front", front.run))
        await enter(running("front access", access.run))
        await front.started.wait()
        yield broker.url


def _endpoints(settings: Settings, redis_url: str, broker_url: str) -> endpoints.EndpointsFile:
    return endpoints.EndpointsFile(
        redis_url=redis_url,
        mqtt_url=broker_url,
        settings=dict(store_settings(settings)),
        control_url=control_url(settings, settings.control_port) if settings.control_port else "",
        control_authority=private_authority(settings),
    )


def _no_sessions() -> bool:
    return not sum(audio.sessions.read().values())


def _needs_demo_model(settings: Settings) -> bool:
    return settings.llm_base_url is None and settings.llm_provider == "openai"


@asynccontextmanager
async def _with_model(settings: Settings) -> AsyncIterator[Settings]:
    """Give settings with a chat model: theirs, else the demo model, which runs during the block."""
    if not _needs_demo_model(settings):
        yield settings
        return
    server = DemoLlmServer(_LOOPBACK, 0)
    async with running("demo model", server.run):
        await server.started.wait()
        yield settings.model_copy(update={"llm_base_url": f"http://{_LOOPBACK}:{server.port}/v1"})


def _checked(settings: Settings) -> Settings:
    """Return settings whose addresses are right and whose ports are free.

    Raises:
        ConfigError: They are not.
    """
    _check_addresses(settings)
    with _naming_running_fleet(settings):
        _check_ports(settings)
    return settings


def _check_addresses(settings: Settings) -> None:
    """Fail if an address is wrong, before starting anything."""
    if settings.mqtt_url:
        broker_address(settings.mqtt_url, settings.tls_ca)
    if settings.redis_url:
        parse_redis_url(settings.redis_url, settings.tls_ca)


@contextmanager
def _naming_running_fleet(settings: Settings) -> Iterator[None]:
    """If the block fails because a port or a folder is taken, name the `fleet up` that runs already."""
    try:
        yield
    except ConfigError as error:
        if (found := endpoints.find(settings.data_dir)) is None:
            raise
        raise ConfigError(f"`fleet up` runs already, as process {found.pid}: {error}") from error


def _with_keys(settings: Settings) -> Settings:
    """Return settings with keys: those of the settings, else those that fleet generates and stores."""
    if settings.secret_keys is None:
        secret = SecretStr(load_or_make_secret_keys(settings.data_dir))
        settings = settings.model_copy(update={"secret_keys": secret})
    if settings.keys or settings.keys_file:
        return settings
    return settings.model_copy(update={"keys_file": keys_path(settings.data_dir)})


def _with_local_metrics(settings: Settings) -> Settings:
    """Return settings that serve metrics on loopback, unless they name a host: metrics require no password."""
    if "metrics_host" in settings.model_fields_set:
        return settings
    named = settings.model_fields_set
    local = settings.model_copy(update={"metrics_host": _LOOPBACK})
    # Keep the set of named settings: a taken port of metrics is an error only if the operator named it.
    local.model_fields_set.intersection_update(named)
    return local


def _check_ports(settings: Settings) -> None:
    """Fail if a port is taken, before loading the models, which takes seconds; the error names the setting."""
    wanted = [
        _Port("udp_port", "udp_host", socket.SOCK_DGRAM),
        _Port("http_port", "http_host"),
        _Port("cloud_port", "cloud_host"),
        _Port("control_port", "control_host"),
    ]
    if settings.metrics_port:
        wanted.append(_Port("metrics_port", "metrics_host"))
    if settings.tls_cert is not None:
        wanted.append(_Port("https_port", "http_host"))
    if settings.mqtt_url is None:
        wanted.append(_Port("mqtt_port", "mqtt_host"))
        if settings.tls_cert is not None:
            wanted.append(_Port("mqtts_port", "mqtt_host"))
    for index, port in enumerate(wanted):
        port.check_distinct(settings, wanted[:index])
    for port in wanted:
        # If another fleet has the default port of metrics or control, this one runs without them.
        if port.name not in _SPARED or port.name in settings.model_fields_set:
            port.check_free(settings)


class _Port(NamedTuple):
    """A port to listen on: the names of its settings."""

    name: str
    host: str
    kind: socket.SocketKind = socket.SOCK_STREAM

    def address(self, settings: Settings) -> tuple[str, int]:
        return getattr(settings, self.host), getattr(settings, self.name)

    def check_distinct(self, settings: Settings, others: list["_Port"]) -> None:
        """Fail if another setting names the same port."""
        host, number = self.address(settings)
        for other in others:
            other_host, other_number = other.address(settings)
            overlap = host == other_host or ANY_ADDRESS in (host, other_host)
            if number and number == other_number and overlap and other.kind is self.kind:
                raise ConfigError(f"{variable(other.name)} and {variable(self.name)} are both {number}")

    def check_free(self, settings: Settings) -> None:
        """Fail if the port is in use."""
        host, number = self.address(settings)
        with socket.socket(socket.AF_INET, self.kind) as probe:
            if self.kind is socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, number))
            except OSError as error:
                setting = variable(self.name)
                if error.errno == errno.EADDRINUSE:
                    raise ConfigError(f"port {number} is taken; stop what uses it or set {setting}") from error
                where = f"{host}:{number} ({error.strerror})"
                raise ConfigError(f"cannot listen on {where}; see {variable(self.host)} and {setting}") from error


def _console_url(settings: Settings, port: int | None) -> str:
    """Return where operators find control; empty if it does not run."""
    return f"{control_url(settings, port)}/" if port else ""
