"""Each role, put together from the settings."""

import asyncio
import logging
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from fleet.api.app import build_app
from fleet.api.vision import load_vision
from fleet.core.ports import ASR_RATE, Asr, Tts
from fleet.edge.announcer import Announcer
from fleet.edge.app import Edge
from fleet.errors import ConfigError
from fleet.front.door import Front
from fleet.front.listeners import secure_listener
from fleet.link.http import HttpServer
from fleet.link.mqtt_url import MqttAddress
from fleet.link.publisher import Publisher
from fleet.link.transport import broker_address, serve
from fleet.llm.llm_openai import OpenAiLlm
from fleet.settings import Settings, load
from fleet.speech.ears import Ears
from fleet.speech.load import load_asr, load_tts, load_vad
from fleet.speech.pcm import Resampler
from fleet.speech.vad_silero import SileroVad
from fleet.speech.voice import Voice
from fleet.store.access import AccessWatch, KeysWatch
from fleet.store.connect import Store
from fleet.store.edges import EdgeRecord, Edges
from fleet.store.firmware_shelf import FirmwareShelf
from fleet.store.mailbox import Mailboxes
from fleet.store.watched_file import WatchedFile
from fleet.tasks import running
from fleet.wire.identity import Keys
from fleet.worker.app import Worker
from fleet.worker.resources import Resources

log = logging.getLogger(__name__)

READY_SECONDS = 20.0
LEAVE_SECONDS = 5.0
"""Longest time to say goodbye, beyond the time for turns."""


@dataclass(frozen=True, slots=True)
class Site:
    """What all roles of a process share."""

    settings: Settings
    keys: Keys
    broker: MqttAddress | None
    """None for a role that does not speak MQTT."""
    store: Store


@dataclass(frozen=True, slots=True)
class Speech:
    """The engines or endpoints of an edge."""

    vad: SileroVad
    asr: Asr
    tts: Tts

    async def close(self) -> None:
        await self.asr.aclose()
        await self.tts.aclose()


@asynccontextmanager
async def site(settings: Settings, *, broker: bool = True) -> AsyncIterator[Site]:
    """Open what a role on its own needs; everything must be named in the settings.

    Args:
        settings: Of the process.
        broker: Whether the role speaks MQTT.

    Raises:
        ConfigError: FLEET_MQTT_URL, FLEET_REDIS_URL or FLEET_KEYS is missing or wrong.
    """
    needed = {"REDIS_URL": settings.redis_url, "KEYS": settings.keys or settings.keys_file}
    for name, value in {**needed, **({"MQTT_URL": settings.mqtt_url} if broker else {})}.items():
        if value is None:
            raise ConfigError(f"FLEET_{name} is missing; only `fleet up` brings its own")
    address = broker_address(settings, settings.mqtt_url) if broker and settings.mqtt_url else None
    store = await Store.open(settings.redis_url or "", settings.shards, settings.tls_ca)
    try:
        keys = read_keys(settings)
        async with follow_keys(settings, keys):
            yield Site(settings, keys, address, store)
    finally:
        await store.close()


def read_keys(settings: Settings) -> Keys:
    """Return the keys that passwords derive from.

    Raises:
        ConfigError: There are none, or they are named twice or wrongly.
    """
    if settings.keys is not None and settings.keys_file is not None:
        raise ConfigError("set FLEET_KEYS or FLEET_KEYS_FILE, not both")
    if settings.keys_file is not None:
        return Keys(WatchedFile(settings.keys_file).read())
    return Keys(settings.keys.get_secret_value() if settings.keys else "")


@asynccontextmanager
async def follow_keys(settings: Settings, keys: Keys) -> AsyncIterator[None]:
    """Take the changes of the keys' file, if there is one, beside the block."""
    if settings.keys_file is None:
        yield
        return
    async with running("keys file", KeysWatch(settings.keys_file, keys).run):
        yield


async def load_speech(settings: Settings) -> Speech:
    """Load the engines side by side, off the event loop; takes a few seconds."""
    async with asyncio.TaskGroup() as group:
        vad = group.create_task(asyncio.to_thread(load_vad, settings), name="load vad")
        asr = group.create_task(asyncio.to_thread(load_asr, settings), name="load asr")
        tts = group.create_task(asyncio.to_thread(load_tts, settings), name="load tts")
    return Speech(vad.result(), asr.result(), tts.result())


@asynccontextmanager
async def worker(here: Site) -> AsyncIterator[None]:
    """Run a worker beside the block; the block begins when it hears its devices."""
    settings = here.settings
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    if settings.llm_base_url is None:
        raise ConfigError("LLM_BASE_URL is missing; only `fleet up` brings a demo model")
    llm = OpenAiLlm(
        settings.llm_base_url,
        key,
        settings.llm_model,
        settings.llm_timeout,
        temperature=settings.llm_temperature,
        max_tokens=settings.llm_max_tokens,
    )
    if here.broker is None:
        raise ConfigError("a worker needs FLEET_MQTT_URL")
    role = Worker(Resources.of(settings, here.keys, llm, here.store), _name(), here.broker)
    try:
        async with running("worker", role.run):
            try:
                await _until_ready("the broker", role)
                yield
            finally:
                async with _limit("worker", settings.drain_seconds):
                    await role.drain(settings.drain_seconds)
    finally:
        await llm.aclose()


@asynccontextmanager
async def edge(here: Site, speech: Speech, *, public: tuple[str, int] | None) -> AsyncIterator[Edge]:
    """Run an edge beside the block; the block begins when the edge is announced.

    Args:
        here: What it shares.
        speech: Its engines.
        public: Host and port by which devices reach it; without it they use the host that they know from bootstrap.
    """
    if here.broker is None:
        raise ConfigError("an edge needs FLEET_MQTT_URL")
    edge_id = _name()
    mailboxes = Mailboxes(here.store)
    publisher = Publisher(here.broker, lambda: here.keys.issue("service", f"fleet-edge-{edge_id}"))
    voice = Voice(speech.tts)
    role = Edge(
        settings=here.settings,
        edge_id=edge_id,
        ears=Ears(speech.vad),
        asr=speech.asr,
        voice=voice,
        publish=publisher.publish,
        post=mailboxes.to_shard,
        mail=lambda: mailboxes.read_edge(edge_id),
    )
    try:
        role.bind()
    except OSError as error:
        raise ConfigError(f"cannot listen on UDP port {here.settings.udp_port}: {error.strerror}") from error
    announcer = _announcer(here, role, public)
    try:
        async with (
            running("edge publisher", publisher.run),
            running("edge", role.run),
            running("edge announcer", announcer.run),
        ):
            try:
                await announcer.announced.wait()
                yield role
            finally:
                role.draining = True
                announcer.hurry()
                async with _limit("edge", here.settings.drain_seconds):
                    await role.drain(here.settings.drain_seconds)
    finally:
        voice.close()
        await speech.close()


def _announcer(here: Site, role: Edge, public: tuple[str, int] | None) -> Announcer:
    def describe() -> EdgeRecord:
        host, port = public or ("", role.port)
        return EdgeRecord(role.id, host, port, role.load, role.draining)

    return Announcer(Edges(here.store), describe)


@asynccontextmanager
async def api(here: Site) -> AsyncIterator[HttpServer]:
    """Run the api beside the block."""
    settings, shelf = here.settings, FirmwareShelf(here.settings.firmware_dir)
    vision = load_vision(settings)
    app = build_app(settings, here.keys, here.store, shelf, vision)
    access = AccessWatch(here.store, here.keys, settings.revocations_file)
    try:
        async with running("access", access.run), running("firmware", shelf.run), serve(app, settings) as server:
            yield server
    finally:
        if vision is not None:
            await vision.aclose()


@asynccontextmanager
async def front(settings: Settings) -> AsyncIterator[Front]:
    """Run a front beside the block; revocations reach it where Redis is named.

    Raises:
        ConfigError: FLEET_MQTT_URL, FLEET_KEYS or the port cannot be used.
    """
    if settings.mqtt_url is None or (settings.keys is None and settings.keys_file is None):
        raise ConfigError("the front needs FLEET_MQTT_URL and FLEET_KEYS")
    keys = read_keys(settings)
    broker, host = broker_address(settings, settings.mqtt_url), settings.plain_host(settings.mqtt_host)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        secure = await enter(secure_listener(settings))
        role = Front(host=host, port=settings.mqtt_port, upstream=broker, keys=keys, secure=secure)
        await enter(follow_keys(settings, keys))
        if settings.redis_url is not None:
            store = await Store.open(settings.redis_url, settings.shards, settings.tls_ca)
            stack.push_async_callback(store.close)
            access = AccessWatch(store, keys, expel=role.expel)
            # Before anybody comes in.
            await access.look()
            await enter(running("access", access.run))
        await enter(running("front", role.run))
        await role.started.wait()
        yield role


async def synthesise(text: str) -> bytes:
    """Return a sentence as 16 kHz PCM, spoken by the voice that the settings choose."""
    tts = await asyncio.to_thread(load_tts, load())
    resampler = Resampler(tts.sample_rate, ASR_RATE)
    pcm = b"".join([resampler.feed(piece) async for piece in tts.speak(text, "")])
    return pcm + resampler.flush()


def public_address(settings: Settings) -> tuple[str, int]:
    """Return where devices reach an edge that runs on its own.

    Raises:
        ConfigError: It is not set: a guess would mean calls without sound.
    """
    host, _, port = (settings.udp_public or "").rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError("FLEET_UDP_PUBLIC must be host:port, the address by which devices reach this edge")
    return host, int(port)


def _name() -> str:
    return f"{socket.gethostname()[:20]}-{secrets.token_hex(4)}"


@asynccontextmanager
async def _limit(role: str, seconds: float) -> AsyncIterator[None]:
    """Limit the end of a role: the time for its turns, and some for what must be said after them."""
    log.info("leaving", extra={"role": role})
    try:
        async with asyncio.timeout(seconds + LEAVE_SECONDS):
            yield
    except TimeoutError:
        log.warning("left before everything was handed over", extra={"role": role})


async def _until_ready(what: str, role: Worker) -> None:
    try:
        async with asyncio.timeout(READY_SECONDS):
            while not role.ready:  # noqa: ASYNC110 - readiness is a state of many parts, not one event
                await asyncio.sleep(0.02)
    except TimeoutError:
        log.warning("not ready yet, going on", extra={"waiting": what})
