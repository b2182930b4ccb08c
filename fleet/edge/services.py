"""What the sessions of an edge share."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from fleet.core.ports import Asr
from fleet.core.rates import Buckets, Rate
from fleet.core.wake_words import WakeWords
from fleet.edge.socket import AudioSocket
from fleet.edge.standstill import Standstill
from fleet.edge.traces import Traces
from fleet.settings import Settings
from fleet.speech.ears import Ears
from fleet.speech.voice import Voice
from fleet.wire.mail import ShardMail


@dataclass(slots=True)
class Services:
    """The outside of a session: models, mail, MQTT, the socket, tasks."""

    settings: Settings
    ears: Ears
    asr: Asr
    voice: Voice
    publish: Callable[[str, bytes], object]
    post: Callable[[int, ShardMail], Awaitable[None]]
    tell: Callable[[int, ShardMail], None]
    """As `post`, without waiting: for what nothing depends on."""
    socket: AudioSocket
    standstill: Standstill
    spawn: Callable[[str, Coroutine[None, None, None]], "asyncio.Task[None]"]
    """Runs work of its own whose failure is logged; the name is the work's in the log."""
    counters: Counter[str] = field(default_factory=Counter)
    traces: Traces = field(default_factory=Traces)
    """For who asks later why a device was silent."""
    wake_words: WakeWords = field(init=False)
    questions: Buckets = field(init=False)
    """How often a device may send typed questions, by its MAC."""

    def __post_init__(self) -> None:
        self.wake_words = WakeWords(self.settings.wake_words.split(","))
        self.questions = Buckets(Rate.parse(self.settings.rate_input))
