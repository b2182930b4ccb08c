"""What the sessions of an edge share."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from fleet.adapters.speech.audio_input import AudioInput
from fleet.adapters.speech.voice import Voice
from fleet.core.ports import Asr
from fleet.core.rates import Buckets, Rate
from fleet.core.wake_words import WakeWords
from fleet.roles.edge.settings import EdgeSettings
from fleet.roles.edge.traces import TraceQueue
from fleet.roles.edge.transport.socket import AudioSocket
from fleet.roles.edge.transport.stall_detector import StallDetector
from fleet.wire.edge_messages import EdgeEvent


@dataclass(slots=True)
class EdgeServices:
    """The outside of a session: models, mail, MQTT, the socket, tasks."""

    settings: EdgeSettings
    ears: AudioInput
    asr: Asr
    voice: Voice
    publish: Callable[[str, bytes], object]
    post: Callable[[int, EdgeEvent], Awaitable[None]]
    tell: Callable[[int, EdgeEvent], None]
    """As `post`, without waiting: for what nothing depends on."""
    socket: AudioSocket
    standstill: StallDetector
    spawn: Callable[[str, Coroutine[None, None, None]], "asyncio.Task[object]"]
    """Runs work of its own whose failure is logged; the name is the work's in the log."""
    counters: Counter[str] = field(default_factory=Counter)
    traces: TraceQueue = field(default_factory=TraceQueue)
    """For who asks later why a device was silent."""
    wake_words: WakeWords = field(init=False)
    questions: Buckets = field(init=False)
    """How often a device may send typed questions, by its MAC."""

    def __post_init__(self) -> None:
        self.wake_words = WakeWords(self.settings.wake_words.split(","))
        self.questions = Buckets(Rate.parse(self.settings.rate_input))
