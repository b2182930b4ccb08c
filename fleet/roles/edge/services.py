"""The parts that all sessions of an edge share."""

from collections import Counter
from dataclasses import dataclass, field

from fleet.adapters.net.mqtt.publisher import Publisher
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.announcements.clips import Clips
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import Asr, TurnDetector
from fleet.core.rates import Buckets, Rate
from fleet.core.wake_words import WakeWords
from fleet.ground.background import BackgroundTasks
from fleet.roles.edge.agents import AgentSpeech, EdgeAgents
from fleet.roles.edge.early_work import EarlyWork
from fleet.roles.edge.outbox import NotificationQueue
from fleet.roles.edge.settings import EdgeSettings
from fleet.roles.edge.traces import TraceQueue
from fleet.roles.edge.transport.socket import AudioSocket
from fleet.roles.edge.transport.stall_detector import StallDetector


@dataclass(slots=True)
class EdgeServices:
    """Models, inboxes, MQTT, the socket, tasks."""

    settings: EdgeSettings
    audio_input: AudioInput
    asr: Asr
    turn_detector: TurnDetector
    voice: Voice
    publisher: Publisher
    """Publishes to devices at QoS 0; drops what it cannot send now."""
    inboxes: Inboxes
    """Of the shards, for events that must not be lost."""
    outbox: NotificationQueue
    """For events to the shards that may be lost."""
    socket: AudioSocket
    stalls: StallDetector
    tasks: BackgroundTasks
    counters: Counter[str] = field(default_factory=Counter)
    traces: TraceQueue = field(default_factory=TraceQueue)
    """For `fleet doctor --device`."""
    early_work: EarlyWork = field(default_factory=EarlyWork)
    documents: KnownAgents | None = None
    """Of agents; None for an edge on which only the settings count."""
    speech: AgentSpeech | None = None
    """The speech engines of agents."""
    clips: Clips | None = None
    """Of announcements; None for an edge that makes none."""
    agents: EdgeAgents = field(init=False)
    wake_words: WakeWords = field(init=False)
    questions: Buckets = field(init=False)
    """Rate limits of typed questions, by MAC."""
    utterances: Buckets = field(init=False)
    """Rate limits of utterances, by MAC."""

    def __post_init__(self) -> None:
        self.wake_words = WakeWords(self.settings.wake_words.split(","))
        self.agents = EdgeAgents(self.settings, self.asr, self.documents, self.speech)
        rate = Rate.parse(self.settings.rate_input)
        self.questions, self.utterances = Buckets(rate), Buckets(rate)
