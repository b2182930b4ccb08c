"""Builds an edge from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.devices.traces import TraceStore
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.sealing import Sealer
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.load import SpeechSettings, offline_voices
from fleet.adapters.speech.voice import Voice
from fleet.ground.errors import ConfigError
from fleet.ground.metrics import audio, bounds
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.edge.announcer import Announcer
from fleet.roles.edge.app import Edge
from fleet.roles.edge.settings import EdgeSettings
from fleet.run.draining import drain_limit, new_process_id
from fleet.run.resources import ProcessResources
from fleet.run.speech import AgentEngines, SpeechEngines
from fleet.run.start_check import checking_models, speech_models


@asynccontextmanager
async def edge(
    resources: ProcessResources, speech: SpeechEngines, *, public: tuple[str, int] | None
) -> AsyncIterator[Edge]:
    """Run an edge during the block; the block begins when the edge is announced.

    Args:
        resources: Of the process.
        speech: Speech engines; the edge closes them at the end.
        public: Host and port by which devices reach the edge; if None, devices use the host from their bootstrap.

    Raises:
        ConfigError: FLEET_MQTT_URL is missing, or the UDP port cannot be used.
    """
    if resources.broker is None:
        raise ConfigError("an edge needs FLEET_MQTT_URL")
    edge_id = new_process_id()
    publisher = Publisher(resources.broker, lambda: resources.keys.issue("service", f"fleet-edge-{edge_id}"))
    voice, engines = Voice(speech.tts, bitrate=resources.settings.voice_bitrate), _agent_engines(resources, speech)
    role = Edge(
        settings=slice_of(resources.settings, EdgeSettings),
        edge_id=edge_id,
        audio_input=AudioInput(speech.vad, echo=speech.echo),
        asr=speech.asr,
        turn_detector=speech.turn_detector,
        voice=voice,
        publisher=publisher,
        inboxes=Inboxes(resources.store),
        documents=KnownAgents(resources.store),
        speech=engines,
        clips=Clips(resources.store),
    )
    announcer = _announcer(resources, role, public)
    try:
        async with (
            _edge_status(resources, role, announcer, publisher),
            running("edge traces", lambda: role.traces.run(TraceStore(resources.store).write)),
            running("edge publisher", publisher.run),
            running("edge", role.run),
            running("edge announcer", announcer.run),
            checking_models(*speech_models(resources.settings)),
            _announced(role, announcer, resources.settings.drain_seconds),
        ):
            yield role
    finally:
        voice.close()
        await engines.aclose()
        await speech.close()


def _agent_engines(resources: ProcessResources, speech: SpeechEngines) -> AgentEngines:
    sealer = Sealer.of(resources.settings.secret_keys)
    return AgentEngines(slice_of(resources.settings, SpeechSettings), speech, sealer)


def _bind(role: Edge, port: int) -> None:
    try:
        role.bind()
    except OSError as error:
        raise ConfigError(f"cannot listen on UDP port {port}: {error.strerror}") from error


@asynccontextmanager
async def _edge_status(
    resources: ProcessResources, role: Edge, announcer: Announcer, publisher: Publisher
) -> AsyncIterator[None]:
    """Export the edge's metrics and readiness during the block."""
    requiring = resources.readiness.requiring
    with (
        audio.drops.following(role.counters),
        audio.packets.following(role.counters),
        audio.sessions.following(lambda: role.load),
        bounds.following("edge_sessions", lambda: role.load, resources.settings.edge_sessions),
        requiring("udp", lambda: role.bound),
        requiring("announced", lambda: announcer.announced.is_set() and not role.draining),
        requiring("broker", lambda: publisher.connected),
    ):
        yield


@asynccontextmanager
async def _announced(role: Edge, announcer: Announcer, drain_seconds: float) -> AsyncIterator[None]:
    """Begin the block when the edge is announced; drain the edge after it."""
    try:
        await announcer.announced.wait()
        yield
    finally:
        role.draining = True
        announcer.announce_now()
        async with drain_limit("edge", drain_seconds):
            await role.drain(drain_seconds)


def _announcer(resources: ProcessResources, role: Edge, public: tuple[str, int] | None) -> Announcer:
    """Bind the edge's port, and return what announces it."""
    _bind(role, resources.settings.udp_port)
    voices = offline_voices(slice_of(resources.settings, SpeechSettings))

    def describe() -> EdgeRecord:
        host, port = public or ("", role.port)
        return EdgeRecord(role.id, host, port, role.load, role.draining, voices)

    return Announcer(Edges(resources.store), describe)
