"""One WebSocket as one device: its texts go over MQTT, its audio over UDP, both unchanged but for the hellos."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from websockets.frames import CloseCode

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import FleetError, Overloaded, Unavailable
from fleet.ground.tasks import single_exception
from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.voice.audio_channel import AudioChannel
from fleet.wire.topics import down_topic, up_topic
from fleet.wire.voice_websocket import (
    PCM_FRAME_MS,
    TAKEN_OVER,
    ClientHello,
    NotHello,
    goodbye,
    is_kind,
    read_welcome,
    to_mqtt,
)

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 10.0
LARGEST_TEXT: Final = 64 * 1024
"""Bytes of a client's message; firmware sends at most 60 KB."""
TEXTS: Final = Rate(20, 100)
"""Messages of one client; one that sends more is closed."""
PACKETS: Final = Rate(60, 120)
"""Audio packets of one client; further ones are read later, and dropped. Packets of 20 ms are 50 a second."""
LONGEST_PAUSE: Final = 1.0
MOST_AUDIO: Final = 40
"""Audio packets that wait for a client that reads too slowly: what firmware's queue holds. Further ones are dropped."""
MOST_EARLY: Final = 20
MOST_WAITING: Final = 200
"""Frames that wait for a client in all; for one more the connection is closed."""


class VoiceEnded(FleetError):
    """The conversation is over; the text is the reason for the client."""

    code: int = CloseCode.NORMAL_CLOSURE


class TakenOver(VoiceEnded):
    """Another client is this device now."""

    code = TAKEN_OVER


class VoiceClient:
    """One client.

    Args:
        client: Its connection.
        mac: The device that it is.
        open_session: Makes its MQTT session with the given `Reading`.
    """

    def __init__(self, client: Client, mac: str, open_session: Callable[[Reading], MqttSession]) -> None:
        self._client, self._mac = client, mac
        # One at a time, so that the client gets its frames in order.
        self._mqtt = open_session(Reading([down_topic(mac)], self._receive, bound=1))
        self._connected = asyncio.Event()
        self._outgoing: asyncio.Queue[str | bytes | VoiceEnded] = asyncio.Queue(MOST_WAITING)
        """Frames for the client, and what ends the conversation."""
        self._audio_waiting = 0
        self._early: list[str] = []
        """Messages that came before the server's hello: over MQTT they may, on a WebSocket the hello is first."""
        self._audio: AudioChannel | None = None
        self._session = ""
        self._hello = ClientHello(b"", "opus", PCM_FRAME_MS)
        """The newest one."""
        self._texts, self._packets = Buckets(TEXTS, most=1), Buckets(PACKETS, most=1)

    async def run(self, hello: bytes) -> None:
        """Be the device until the client leaves, the server says goodbye, or the broker ends the connection.

        Args:
            hello: The client's.

        Raises:
            NotHello: It cannot be answered.
        """
        if len(hello) > LARGEST_TEXT:
            raise NotHello("the hello is too large")
        self._hello = to_mqtt(hello)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._mqtt.run(self._connected.set), name="voice mqtt")
                group.create_task(self._write(), name="voice writer")
                group.create_task(self._read(self._hello.message), name="voice reader")
        except* FleetError as ended:
            # The broker may have closed the session of this device meanwhile.
            reason = single_exception(ended.subgroup(VoiceEnded) or ended)
            log.info("voice client ended", extra={"device": self._mac, "reason": str(reason)})
            if isinstance(reason, VoiceEnded):
                await self._client.socket.close(reason.code, str(reason))
            elif not isinstance(reason, ClientGone):
                await self._client.socket.close(CloseCode.TRY_AGAIN_LATER, "the server cannot serve you now")
        finally:
            if self._audio:
                self._audio.close()

    def end(self, reason: VoiceEnded) -> None:
        """End the conversation."""
        self._queue(reason)

    async def _read(self, hello: bytes) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._connected.wait()
        self._publish(hello)
        try:
            while (frame := await self._client.receive_frame()) is not None:
                if isinstance(frame, bytes):
                    await self._pass_audio(frame)
                else:
                    self._pass_text(frame.encode())
        finally:
            # The end of a connection is a device's goodbye.
            if self._session and self._mqtt.connected:
                self._publish(goodbye(self._session))
        raise ClientGone("the client left")

    async def _pass_audio(self, packet: bytes) -> None:
        wait = self._packets.take("", asyncio.get_running_loop().time())
        if wait:
            # Read nothing meanwhile: then a flood costs no more than speech.
            await asyncio.sleep(min(wait, LONGEST_PAUSE))
        elif self._audio:
            self._audio.send(packet)

    def _pass_text(self, frame: bytes) -> None:
        if len(frame) > LARGEST_TEXT or self._texts.take("", asyncio.get_running_loop().time()):
            raise VoiceEnded("too many messages, or too large ones")
        try:
            if is_kind(frame, "hello"):
                self._hello = to_mqtt(frame)
                frame = self._hello.message
            self._publish(frame)
        except NotHello as error:
            raise VoiceEnded(str(error)) from error

    def _publish(self, frame: bytes) -> None:
        try:
            self._mqtt.publish(up_topic(self._mac), frame)
        except Overloaded as error:
            log.warning("frame dropped", extra={"device": self._mac, "reason": str(error)})

    async def _receive(self, topic: str, payload: bytes) -> None:
        """Pass on a message of the server."""
        if topic != down_topic(self._mac):
            return
        if (welcome := read_welcome(payload)) is not None:
            former, self._session, sound = self._audio, welcome.session, self._hello.sound
            try:
                self._audio = await AudioChannel.open(welcome, sound, self._hello.frame_ms, self._queue_audio)
            except OSError as error:
                raise Unavailable(f"no way to the edge {welcome.host}:{welcome.port}: {error}") from error
            if former:
                former.close()
            for frame in (welcome.frame(sound), *self._early):
                self._queue(frame)
            self._early = []
        elif is_kind(payload, "goodbye"):
            self._queue(VoiceEnded("the server said goodbye"))
        elif self._session:
            self._queue(payload.decode("utf-8", "replace"))
        elif len(self._early) < MOST_EARLY:
            self._early.append(payload.decode("utf-8", "replace"))

    def _queue_audio(self, packet: bytes) -> None:
        if self._audio_waiting < MOST_AUDIO:
            self._audio_waiting += 1
            self._queue(packet)

    def _queue(self, frame: str | bytes | VoiceEnded) -> None:
        try:
            self._outgoing.put_nowait(frame)
        except asyncio.QueueFull:
            self._client.cut()

    async def _write(self) -> None:
        while True:
            frame = await self._outgoing.get()
            if isinstance(frame, VoiceEnded):
                raise frame
            await self._client.send_frame(frame)
            self._audio_waiting -= isinstance(frame, bytes)
