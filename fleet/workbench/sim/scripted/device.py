"""A simulated device whose behaviour is a test: the test says what it sends, when it listens and when it is silent."""

import ssl

from fleet.workbench.sim.messages import outbound, server_hello
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.profiles.profile import Profile
from fleet.workbench.sim.records.expectation import Failed
from fleet.workbench.sim.scripted.audio import ScriptedAudio
from fleet.workbench.sim.scripted.connected_device import ConnectedDevice, Origin
from fleet.workbench.sim.scripted.microphone import ScriptedMicrophone
from fleet.workbench.sim.scripted.received import ReceivedMessage

HELLO_SECONDS = 10.0


class ScriptedDevice(ConnectedDevice):
    """One device; enter `running` to power it on.

    Args:
        profile: Which build it is.
        mac: Canonical.
        ota_url: Where it boots from.
        tls: Trust for MQTT on port 8883.
    """

    def __init__(self, profile: Profile, mac: str, ota_url: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(profile, mac, Origin(ota_url, tls))
        self.relisten = True
        """Whether it says `listen start` again after `tts stop`, as firmware in auto mode mostly does."""
        self.speaking = False
        """Between `tts start` and `tts stop`."""
        self._audio: ScriptedAudio | None = None
        self._microphone: ScriptedMicrophone | None = None

    @property
    def audio(self) -> ScriptedAudio:
        assert self._audio is not None, "the device has no channel"  # noqa: S101 - the test's own fault
        return self._audio

    @property
    def microphone(self) -> ScriptedMicrophone:
        assert self._microphone is not None, "the device has no channel"  # noqa: S101 - the test's own fault
        return self._microphone

    async def hello(self, message: JsonObject | None = None, *, seconds: float = HELLO_SECONDS) -> ServerHello:
        """Say hello and take the answer; the first one also opens the socket.

        Args:
            message: In place of the profile's own hello.
            seconds: Longest wait for the answer.

        Raises:
            Failed: No answer, or one that firmware cannot use.
        """
        asked = self.clock()
        self.send(message or outbound.hello(self.profile))
        answer = await self.messages.expect("hello", seconds=seconds, after=asked)
        return await self.adopt(answer)

    async def adopt(self, answer: ReceivedMessage) -> ServerHello:
        """Take a server's hello as firmware does, in whatever state."""
        hello = server_hello.read(answer.body)
        if hello is None:
            raise Failed(f"a hello that firmware cannot use: {answer}")
        self.session = hello.session
        if self._audio is not None:
            self._audio.rekey(hello)
            return hello
        self._audio = ScriptedAudio(hello, self.profile)
        await self._audio.open()
        self._microphone = ScriptedMicrophone(self._audio.send, self.profile.frame_ms, self.profile.application)
        self.spawn(self._microphone.run(), "scripted-microphone")
        return hello

    def listen(self, mode: str = "", state: str = "start") -> None:
        """Say that the microphone is on, and switch it on; in the profile's mode if none is named."""
        mode = mode or self.profile.mode
        self.send({"session_id": self.session, "type": "listen", "state": state, "mode": mode})
        self.microphone.on = True

    def release(self) -> None:
        """Push-to-talk is released: stop sending and say so."""
        self.microphone.on = False
        self.send(outbound.listen_stop(self.session))

    def detect(self, text: str) -> None:
        self.send(outbound.detect(self.session, text))

    def abort(self, reason: str = "") -> None:
        self.send(outbound.abort(self.session, reason))

    def goodbye(self, session: str | None = None) -> None:
        self.send(outbound.goodbye(self.session if session is None else session))

    def _react(self, message: ReceivedMessage) -> None:
        super()._react(message)
        if message.kind == "tts" and message.state in ("start", "stop"):
            was, self.speaking = self.speaking, message.state == "start"
            if self.profile.mode == "auto" and self._microphone and was is not self.speaking:
                self._switch(self._microphone)

    def _switch(self, microphone: ScriptedMicrophone) -> None:
        """In auto mode there is no microphone while the device speaks, and one again after it."""
        microphone.on = not self.speaking
        if microphone.on and self.relisten:
            self.listen()

    def _end(self) -> None:
        super()._end()
        if self._audio:
            self._audio.close()
