"""One hello until goodbye: packets and commands of the shard in, packets and commands to the device out."""

import logging

from fleet.adapters.redis.devices.traces import EdgeNote
from fleet.ground.metrics import audio
from fleet.roles.edge.listening.detected import DetectedTextFilter
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.roles.edge.transport.echo import EchoResponder
from fleet.roles.edge.transport.socket import Address
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.roles.edge.turn_taking import TurnTaking
from fleet.wire import echo
from fleet.wire.dialect import Dialect
from fleet.wire.edge_messages import (
    AbortAnswerCommand,
    DetectedTextCommand,
    DeviceReturnedCommand,
    EdgeCommand,
    EndAnswerCommand,
    OpenSessionCommand,
    SessionSilentEvent,
    SpeakSentenceCommand,
    StartAnswerCommand,
    StartListeningCommand,
    StopListeningCommand,
    TurnProgressCommand,
)
from fleet.wire.messages import AnswerStopCommand, AudioFormat, GoodbyeCommand
from fleet.wire.packet import Channel, Header

log = logging.getLogger(__name__)

RETURN_SECONDS = 0.5
"""How long a device that came back may say hello first: what it then hears of this session would harm the new one."""


class EdgeSession:
    """One session's audio.

    Args:
        opened: What the session's shard agreed with the device.
        dialect: How the device speaks.
        services: Of the edge.
        now: The time.
    """

    def __init__(self, opened: OpenSessionCommand, dialect: Dialect, services: EdgeServices, now: float) -> None:
        self.opened = opened
        self._services = services
        channel = Channel(bytes.fromhex(opened.key), opened.ssrc)
        uplink = AudioFormat(opened.uplink_rate, opened.uplink_frame_ms)
        self._stream = UplinkStream(channel, uplink, services.counters, now)
        self._transport = DownlinkTransport(opened, dialect, channel, self._stream, services)
        self._turn_taking = TurnTaking(self._transport, services, now)
        self._detected = DetectedTextFilter(self._transport, services, self._turn_taking)
        self._echo = EchoResponder(opened.key, services.socket)
        self._returned = Timer(self)
        self._opened_at: float | None = now
        """Until the device is heard."""

    def receive(self, header: Header, datagram: bytes, address: Address, now: float) -> None:
        """Take one packet that carries this session's ssrc."""
        earlier = self._stream.address
        payload = self._stream.admit(header, datagram, address, now)
        if self._stream.address != earlier:
            self._move(now)
        if payload is None:
            if header.flags == echo.FLAGS:
                self._echo.take(datagram, address)
            return
        if header.timestamp and self.opened.aec:
            self._turn_taking.turns.downlink.played(header.timestamp, now)
        uplink = self._turn_taking.uplink
        if self._stream.proved:
            uplink.rejoin(self._stream.proved, now)
            self._stream.proved = []
        uplink.push(header.sequence, payload, now)
        # Where the server cancels the echo a device always sends.
        if payload and uplink.gate != "open" and not self.opened.aec:
            self._turn_taking.interjection.hear(now)

    async def take(self, command: EdgeCommand, now: float) -> None:
        """Do what a shard says about this session."""
        turns = self._turn_taking.turns
        with self._transport.fields(getattr(command, "turn", "")):
            log.debug("command of the shard", extra={"kind": command.kind})
            match command:
                case SpeakSentenceCommand():
                    if answer := turns.answer_of(command, now):
                        answer.add(command)
                        turns.downlink.show_face()
                case StartAnswerCommand():
                    self._turn_taking.begin_speech(command, now)
                case TurnProgressCommand():
                    turns.touch(command, now)
                case EndAnswerCommand():
                    turns.end(command, now)
                case _:
                    self._obey(command, now)

    @property
    def busy(self) -> bool:
        """Whether somebody says something, waits for an answer, or hears one."""
        period = self._turn_taking.uplink.period
        return self._turn_taking.busy or (period is not None and period.speaking)

    def dismiss(self) -> None:
        """Fall silent because the edge ends, and ask the shard to end the session."""
        if self._turn_taking.busy:
            self._turn_taking.turns.leave()
            self._transport.send_command(AnswerStopCommand(self.opened.session))
        self.resign()

    def resign(self) -> None:
        """Ask the shard to end the session, if it has not long ago."""
        silent = SessionSilentEvent(device=self.opened.device, session=self.opened.session, reason="leaving")
        self._services.outbox.put(self.opened.shard, silent)

    def check(self, now: float) -> None:
        """Look after time limits; a few times a second."""
        self._turn_taking.check(now)

    def wake(self) -> None:
        """The edge stood still: who said something meanwhile waits for an answer that nobody knows of."""
        if self._turn_taking.uplink.gate == "open" and not self.busy:
            with self._transport.fields():
                self._turn_taking.fail("interrupted")

    def leave(self) -> None:
        """Fall silent because the edge ends, and say goodbye, so that the device begins anew elsewhere."""
        downlink = self._turn_taking.turns.downlink
        if downlink.speaking or downlink.stop_in_doubt:
            self._transport.send_command(AnswerStopCommand(self.opened.session))
        self.close()
        self._transport.send_command(GoodbyeCommand(self.opened.session))

    def close(self) -> None:
        """Fall silent at once; send nothing."""
        self._services.socket.wheel.cancel(self._returned)
        self._detected.close()
        self._turn_taking.close()
        self._note("end", f"{self._stream.newest} {self._transport.sent}")
        with self._transport.fields():
            log.debug("audio ends", extra={"uplink": self._stream.newest, "downlink": self._transport.sent})

    def _obey(self, command: EdgeCommand, now: float) -> None:
        """Do what the device said on its way through the shard."""
        match command:
            case StartListeningCommand():
                self._turn_taking.start_listening(command.mode, now)
            case StopListeningCommand():
                self._turn_taking.stop_listening(now)
            case DetectedTextCommand():
                self._detected.take(command.text, now)
            case AbortAnswerCommand():
                self._turn_taking.abort(now)
            case DeviceReturnedCommand():
                self._services.socket.wheel.set(self._returned, now + RETURN_SECONDS)
            case _:
                # Opening and closing are the registry's.
                return

    def on_timer(self, now: float) -> None:
        """The device is back, and may have missed an answer or its end; the end of what is being spoken it will hear.

        A device that has heard the end, or was never spoken to, is sent nothing: py-xiaozhi would stop to record.
        """
        turns = self._turn_taking.turns
        if turns.replay.meet(now):
            self._turn_taking.uplink.shut()
        elif turns.downlink.stop_in_doubt and not turns.downlink.speaking:
            turns.downlink.stop()

    def _note(self, what: EdgeNote, text: str) -> None:
        self._services.traces.note(self.opened.device, what, f"{self.opened.session} {text}")

    def _move(self, now: float) -> None:
        if self._opened_at is not None:
            audio.first_uplink_delay.observe(now - self._opened_at)
            self._opened_at = None
        self._turn_taking.silence.used = True
        self._note("audio", "{}:{}".format(*self._stream.address) if self._stream.address else "")
        with self._transport.fields():
            log.info("device address", extra={"address": self._stream.address})
            self._turn_taking.turns.downlink.try_again(now)
