"""An edge, from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import audio, bounds
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.edge.announcer import Announcer
from fleet.roles.edge.app import Edge
from fleet.roles.edge.settings import EdgeSettings
from fleet.run.draining import drain_limit, new_process_id
from fleet.run.site import Site
from fleet.run.speech import Speech
from fleet.run.start_check import checking_models, speech_models


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
    edge_id = new_process_id()
    publisher = Publisher(here.broker, lambda: here.keys.issue("service", f"fleet-edge-{edge_id}"))
    voice = Voice(speech.tts)
    role = Edge(
        settings=slice_of(here.settings, EdgeSettings),
        edge_id=edge_id,
        audio_input=AudioInput(speech.vad),
        asr=speech.asr,
        voice=voice,
        publisher=publisher,
        inboxes=Inboxes(here.store),
    )
    try:
        role.bind()
    except OSError as error:
        raise ConfigError(f"cannot listen on UDP port {here.settings.udp_port}: {error.strerror}") from error
    announcer = _announcer(here, role, public)
    try:
        async with (
            _watched(here, role, announcer, publisher),
            running("edge traces", lambda: role.traces.run(TraceStore(here.store).write)),
            running("edge publisher", publisher.run),
            running("edge", role.run),
            running("edge announcer", announcer.run),
            checking_models(*speech_models(here.settings)),
        ):
            try:
                await announcer.announced.wait()
                yield role
            finally:
                role.draining = True
                announcer.announce_now()
                async with drain_limit("edge", here.settings.drain_seconds):
                    await role.drain(here.settings.drain_seconds)
    finally:
        voice.close()
        await speech.close()


@asynccontextmanager
async def _watched(here: Site, role: Edge, announcer: Announcer, publisher: Publisher) -> AsyncIterator[None]:
    """Show what the edge counts, and tell what it needs, during the block."""
    requiring = here.readiness.requiring
    with (
        audio.drops.following(role.counters),
        audio.packets.following(role.counters),
        audio.sessions.following(lambda: role.load),
        bounds.following("edge_sessions", lambda: role.load, here.settings.edge_sessions),
        requiring("udp", lambda: role.bound),
        requiring("announced", lambda: announcer.announced.is_set() and not role.draining),
        requiring("broker", lambda: publisher.connected),
    ):
        yield


def _announcer(here: Site, role: Edge, public: tuple[str, int] | None) -> Announcer:
    def describe() -> EdgeRecord:
        host, port = public or ("", role.port)
        return EdgeRecord(role.id, host, port, role.load, role.draining)

    return Announcer(Edges(here.store), describe)
