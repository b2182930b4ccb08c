"""The simulated device as its user and a test see it: a thing with a button, ears and a voice."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fleet.sim.board import Board
from fleet.sim.journal import Journal, Step
from fleet.sim.loudness import SAMPLE_BYTES
from fleet.sim.main_loop import Flag
from fleet.sim.microphone import Utterance, Voice
from fleet.sim.ota import Identity, system_info
from fleet.sim.owner import Owner
from fleet.sim.power import Power
from fleet.sim.profile import Profile
from fleet.sim.report import Report, build
from fleet.sim.state import State
from fleet.sim.turns import Turn, TurnLog
from fleet.sim.uplink import SAMPLE_RATE, encode_all, room_noise
from fleet.sim.watch import Signal
from fleet.speech.pcm import write_wav

BOOT_SECONDS = 60.0
LISTEN_SECONDS = 30.0
TURN_SECONDS = 60.0
_BETWEEN_TURNS = 0.5


class SimDevice:
    """One device; everything between power-on and power-off happens inside `running`.

    `board` holds what tools read and change, and may be set up before.

    Args:
        profile: Which build it is.
        ota_url: Where it boots from.
        mac: Canonical MAC.
        on_step: Told every step at once, for live display.
        tls: Trust for MQTT on port 8883; the public authorities without it.
        seed: Makes the drawn times repeatable.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        ota_url: str,
        mac: str,
        on_step: Callable[[Step], None] | None = None,
        tls: ssl.SSLContext | None = None,
        seed: int | None = None,
    ) -> None:
        identity = Identity.of(mac)
        self._signal = Signal()
        self.mac = mac
        self.profile = profile
        self.board = Board(
            system_info=system_info(identity, profile),
            upload_headers={"Device-Id": mac, "Client-Id": identity.client},
        )

        def tell(step: Step) -> None:
            self._signal.notify()
            if on_step:
                on_step(step)

        self.journal = Journal(asyncio.get_running_loop().time, profile.ignored, tell)
        self.turns = TurnLog(self._signal.notify)
        owner = Owner(profile, self.journal, self.board, self.turns, self._signal, random.Random(seed))
        self._chance = owner.chance
        self._power = Power(owner, identity, ota_url, tls)

    @property
    def state(self) -> State:
        return self._power.current.machine.state if self._power.current else State.STARTING

    @property
    def session(self) -> str:
        """Id of the open session, else empty."""
        return self._power.current.channel.live if self._power.current else ""

    @property
    def listening(self) -> bool:
        """Whether the microphone is on and the server knows."""
        unit = self._power.current
        return unit is not None and self.state is State.LISTENING and unit.microphone.running

    @property
    def report(self) -> Report:
        """What was found out so far."""
        tools = self.board.state()
        return build(self.mac, self.profile.name, self.journal, self.turns.turns, tools, self._power.worst_lag)

    @asynccontextmanager
    async def running(self, seconds: float = BOOT_SECONDS) -> AsyncIterator["SimDevice"]:
        """Power on, and enter the block once MQTT is up; leaving it is power-off.

        Raises:
            Unavailable: Bootstrap gave nothing usable, or MQTT was not up after so many seconds.
        """
        async with self._power.on(seconds):
            yield self

    async def until(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Wait until something about the device is so; return whether it is."""
        return await self._signal.within(seconds, holds)

    async def wake(self, wake_text: str = "hi", audio: bytes = b"", seconds: float = LISTEN_SECONDS) -> bool:
        """Say the wake word; return whether the device listens now.

        Args:
            wake_text: What the device believes to have heard.
            audio: PCM at 16 kHz captured before, of which the last two seconds are sent; room noise without it.
            seconds: Longest time to wait.
        """
        frames, frame_ms = self.profile.wake_packets, self.profile.frame_ms
        cached = audio or room_noise(frames, frame_ms, self._chance)
        kept = frames * frame_ms * SAMPLE_RATE // 1000 * SAMPLE_BYTES
        packets = encode_all(cached[-kept:], frame_ms) if frames else []
        self._power.unit.dialogue.wake(wake_text, packets)
        return await self.until(seconds, lambda: self.listening)

    async def press(self, seconds: float = LISTEN_SECONDS) -> bool:
        """Press the button (and hold it in manual mode); return whether the device listens now."""
        self._push()
        return await self.until(seconds, lambda: self.listening)

    def release(self) -> None:
        """Let go of the button in manual mode."""
        self._power.unit.main_loop.set(Flag.RELEASED)

    async def say(self, what: bytes | Voice, seconds: float = TURN_SECONDS) -> Turn:
        """Say something, and listen to the answer to its end.

        In manual mode the button is pressed before, unless it is, and let go at the end of the speech. In the other
        modes the device must listen, or be about to.

        Args:
            what: PCM at 16 kHz, or a live voice.
            seconds: Longest time from now to the end of the answer.
        """
        manual = self.profile.mode == "manual"
        if manual and not self.listening:
            self._push()
        ready = await self.until(seconds, lambda: self.listening)
        if not ready:
            return self.turns.miss()
        turn = self.turns.begin(spoken=True)
        voice = Utterance(what) if isinstance(what, bytes) else what
        self._power.unit.microphone.hear(voice)
        try:
            async with asyncio.timeout(seconds):
                await self._signal.until(lambda: voice.over or (manual and voice.ended is not None))
                _note_speech(self.journal, turn, voice)
                if manual:
                    self.release()
                await self._signal.until(lambda: turn.outcome != "open")
        except TimeoutError:
            self.turns.end("timeout")
        return turn

    async def abort(self, seconds: float = 5.0) -> bool:
        """Interrupt the answer with the button; return whether the device stopped speaking."""
        self._push()
        return await self.until(seconds, lambda: self.state is not State.SPEAKING)

    async def hang_up(self, seconds: float = 10.0) -> bool:
        """End the conversation, interrupting the answer if there is one; return whether the channel is closed."""
        unit = self._power.unit
        manual = self.profile.mode == "manual"
        if self.state is State.SPEAKING and not manual:
            await self.abort(seconds)
        if self.state is State.LISTENING and not manual:
            self._push()
        else:
            unit.main_loop.schedule(lambda: unit.dialogue.hang_up(say_goodbye=True))
        return await self.until(seconds, lambda: not self.session and self.state is State.IDLE)

    def heard_wav(self, turn: int | None = None) -> bytes:
        """Return a WAV file of what was played, in real time: of one turn, or of all with a short pause between."""
        turns = self.turns.turns if turn is None else [self.turns.turns[turn]]
        rate = turns[-1].sample_rate if turns else 24_000
        pause = bytes(round(_BETWEEN_TURNS * rate) * SAMPLE_BYTES)
        return write_wav(pause.join(one.heard() for one in turns if one.pieces), rate)

    def _push(self) -> None:
        self._power.unit.main_loop.set(Flag.PRESSED if self.profile.mode == "manual" else Flag.BUTTON)


def _note_speech(journal: Journal, turn: Turn, voice: Voice) -> None:
    turn.cut_off = voice.ended is None
    for name, at in (("speech begins", voice.began), ("end of speech", voice.ended)):
        if at is not None:
            turn.mark(name, at)
            journal.note(name, at, turn=turn.index)
