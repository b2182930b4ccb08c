"""The simulated device as a user or a test operates it: wake word, button, speech."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fleet.workbench.sim.audio.encoder import SAMPLE_RATE, encode_all, room_noise
from fleet.workbench.sim.audio.microphone import UserVoice, Utterance
from fleet.workbench.sim.device_view import DeviceView
from fleet.workbench.sim.firmware.power import Power
from fleet.workbench.sim.messages import outbound
from fleet.workbench.sim.network.conditions import NetworkConditions
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.network.malformed import BAD_SSID, BAD_WAKE_TEXT
from fleet.workbench.sim.profiles.identity import Identity, system_info
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.change_signal import ChangeSignal
from fleet.workbench.sim.records.journal import Journal, Step
from fleet.workbench.sim.records.loudness import SAMPLE_BYTES
from fleet.workbench.sim.records.turns import Turn, TurnLog
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.main_loop import Flag
from fleet.workbench.sim.runtime.state import State
from fleet.workbench.sim.tools.board import Board

BOOT_SECONDS = 60.0
LISTEN_SECONDS = 30.0
TURN_SECONDS = 60.0
_JUDGED_SECONDS = 3.0


class SimDevice(DeviceView):
    """One device; everything between power-on and power-off happens inside `running`.

    `board` holds what tools read and change, and may be set up before.

    Args:
        profile: Which build it is.
        ota_url: Where it boots from.
        mac: Canonical MAC.
        client: Its Client-Id, a new one after its memory was erased; without it the one that follows from the MAC.
        on_step: Called with every step at once, for live display.
        tls: Trust for HTTPS, and for MQTT on port 8883; the public authorities without it.
        seed: Makes the drawn times and faults repeatable.
        faults: What goes wrong.
    """

    def __init__(  # noqa: PLR0913 - what a user may choose, all of it by name
        self,
        profile: Profile,
        *,
        ota_url: str,
        mac: str,
        client: str = "",
        on_step: Callable[[Step], None] | None = None,
        tls: ssl.SSLContext | None = None,
        seed: int | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults or Faults()
        identity = Identity.of(mac, BAD_SSID if self._faults.invalid_utf8 else "home", client)
        signal = ChangeSignal()
        board = Board(
            ssid=identity.ssid,
            carrier="CHINA MOBILE" if profile.cellular else "",
            system_info=system_info(identity, profile),
            upload_headers={"Device-Id": mac, "Client-Id": identity.client},
        )

        def tell(step: Step) -> None:
            signal.notify()
            if on_step:
                on_step(step)

        journal = Journal(asyncio.get_running_loop().time, profile.ignored, tell)
        turns = TurnLog(signal.notify)
        chance = random.Random(seed)
        network = NetworkConditions.of(profile, self._faults, chance)
        context = DeviceContext(profile, journal, board, turns, signal, network, chance)
        super().__init__(mac, context, Power(context, identity, ota_url, tls))
        self._chance = chance

    @asynccontextmanager
    async def running(self, seconds: float = BOOT_SECONDS) -> AsyncIterator["SimDevice"]:
        """Power on, and enter the block once MQTT is up, if the build keeps it up; leaving it is power-off.

        Raises:
            Unavailable: Bootstrap gave nothing usable, or MQTT was not up after so many seconds.
        """
        async with self._power.on(seconds):
            yield self

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
        self._power.boot.application.wake(BAD_WAKE_TEXT if self._faults.invalid_utf8 else wake_text, packets)
        return await self.until(seconds, lambda: self.listening)

    async def press(self, seconds: float = LISTEN_SECONDS) -> bool:
        """Press the button (and hold it in manual mode); return whether the device listens now."""
        self._push()
        return await self.until(seconds, lambda: self.listening)

    def release(self) -> None:
        """Let go of the button in manual mode."""
        self._power.boot.main_loop.set(Flag.RELEASED)

    async def say(self, what: bytes | UserVoice, seconds: float = TURN_SECONDS) -> Turn:
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
        return await self._speak(what, seconds)

    async def _speak(self, what: bytes | UserVoice, seconds: float) -> Turn:
        manual = self.profile.mode == "manual"
        turn = self.turns.begin(spoken=True)
        voice = Utterance(what) if isinstance(what, bytes) else what
        self._power.boot.microphone.hear(voice)
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

    async def type(self, text: str, seconds: float = TURN_SECONDS) -> Turn:
        """Type a question into the text box of py-xiaozhi, and listen to the answer to its end.

        It opens the conversation or interrupts the answer first if need be (src/plugins/ui_session.py, send_text).
        """
        if self.speaking:
            await self.abort(seconds)
        elif not self.listening:
            self._push()
        if not await self.until(seconds, lambda: self.listening):
            return self.turns.miss()
        turn, boot = self.turns.begin(spoken=True), self._power.boot
        # What is typed has no length: its latencies count from the moment in which it is sent.
        turn.mark("end of speech", asyncio.get_running_loop().time())

        async def send() -> None:
            await boot.channel.send(outbound.typed(boot.channel.session, text))

        boot.main_loop.schedule(send)
        if not await self.until(seconds, lambda: turn.outcome != "open"):
            self.turns.end("timeout")
        return turn

    async def barge_in(self, what: bytes | UserVoice, seconds: float = TURN_SECONDS) -> Turn:
        """Speak over the answer, in realtime mode, and listen to the next answer to its end."""
        self.turns.end("aborted")
        return await self._speak(what, seconds)

    def talk_over(self, what: bytes) -> Utterance:
        """Speak over the answer, in realtime mode, without waiting; return what is being said.

        The turn goes on. Silence in it is no breach for a while: the server may hold the answer and judge the speech.
        """
        voice = Utterance(what)
        self.journal.excuse(("underrun", "pause"), len(what) / SAMPLE_BYTES / SAMPLE_RATE + _JUDGED_SECONDS)
        self._power.boot.microphone.hear(voice)
        return voice

    async def interject(self, what: bytes | UserVoice, seconds: float = TURN_SECONDS) -> Turn:
        """Press the button during the answer, in manual mode, say something and let go; listen to the next answer.

        Firmware says `abort` before it listens; py-xiaozhi does not.
        """
        self.turns.end("aborted")
        self._push()
        if not await self.until(seconds, lambda: self.listening):
            return self.turns.miss()
        return await self._speak(what, seconds)

    async def abort(self, seconds: float = 5.0) -> bool:
        """Interrupt the answer with the button; return whether the device stopped speaking."""
        self._push()
        return await self.until(seconds, lambda: not self.speaking)

    async def hang_up(self, seconds: float = 10.0) -> bool:
        """End the conversation, interrupting the answer if there is one; return whether the channel is closed."""
        boot = self._power.boot
        manual = self.profile.mode == "manual"
        if self.speaking and not manual:
            await self.abort(seconds)
        if self.state is State.LISTENING and not manual:
            self._push()
        else:
            boot.main_loop.schedule(lambda: boot.application.hang_up(say_goodbye=True))
        return await self.until(seconds, lambda: not self.session and self.state is State.IDLE)

    def _push(self) -> None:
        self._power.boot.main_loop.set(Flag.PRESSED if self.profile.mode == "manual" else Flag.BUTTON)


def _note_speech(journal: Journal, turn: Turn, voice: UserVoice) -> None:
    turn.cut_off = voice.ended is None
    for name, at in (("speech begins", voice.began), ("end of speech", voice.ended)):
        if at is not None:
            turn.mark(name, at)
            journal.note(name, at, turn=turn.index)
