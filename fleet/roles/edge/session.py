"""One session on its edge: packets and the shard's commands come in; packets and commands to the device go out."""

import logging

from fleet.ground.metrics import audio
from fleet.roles.edge.listening.detected import DetectedTextFilter
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.datagrams import Address
from fleet.roles.edge.transport.downlink import DownlinkTransport
from fleet.roles.edge.transport.echo import EchoResponder
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
    PrepareSentenceCommand,
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
"""Time for a device that reconnected to send a new hello. What is sent for the old session after it would disturb the
new session."""


class EdgeSession:
    """One session's audio.

    Args:
        opened: What the session's shard agreed with the device.
        dialect: Of the device.
        services: Of the edge.
        now: The time.
    """

    def __init__(self, opened: OpenSessionCommand, dialect: Dialect, services: EdgeServices, now: float) -> None:
        self.opened = opened
        self._services = services
        channel = services.socket.channel(bytes.fromhex(opened.key), opened.ssrc)
        self._native = None if isinstance(channel, Channel) else channel
        uplink = AudioFormat(opened.uplink_rate, opened.uplink_frame_ms)
        self._stream = UplinkStream(channel, uplink, services.counters, now)
        self._transport = DownlinkTransport(opened, dialect, channel, self._stream, services)
        self._turn_taking = TurnTaking(self._transport, services, now)
        self._detected = DetectedTextFilter(self._transport, services, self._turn_taking)
        self._echo = EchoResponder(opened.key, services.socket)
        self._return_timer = Timer()
        self._opened_at: float | None = now
        """When the session was opened; None after the first packet."""

    def receive(self, header: Header, datagram: bytes, address: Address, now: float) -> None:
        """Take one packet that carries this session's ssrc."""
        earlier = self._stream.address
        payload = self._stream.admit(header, datagram, address, now)
        if self._stream.address != earlier:
            self._note_address(now)
        if payload is None:
            if header.flags == echo.FLAGS:
                self._echo.take(datagram, address)
            return
        if header.timestamp and self.opened.aec:
            self._turn_taking.turns.downlink.note_played(header.timestamp, now)
        uplink = self._turn_taking.uplink
        if self._stream.proved:
            uplink.rejoin(self._stream.proved, now)
            self._stream.proved = []
        uplink.push(header.sequence, payload, now, header.timestamp)
        # With echo cancellation in the server a device always sends.
        if payload and uplink.gate != "open" and not self.opened.aec:
            self._turn_taking.manual_interruption.note_packet(now)

    def receive_admitted(self, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one packet that the native part of the socket has admitted."""
        # The same as at the end of `receive`: one more call for each packet would cost more than these lines.
        aec, uplink = self.opened.aec, self._turn_taking.uplink
        if timestamp and aec:
            self._turn_taking.turns.downlink.note_played(timestamp, now)
        uplink.push(sequence, payload, now, timestamp)
        if uplink.gate != "open" and not aec:
            self._turn_taking.manual_interruption.note_packet(now)

    async def take(self, command: EdgeCommand, now: float) -> None:
        """Carry out a command of the shard."""
        turns = self._turn_taking.turns
        with self._transport.fields(getattr(command, "turn", "")):
            log.debug("command received", extra={"kind": command.kind})
            match command:
                case SpeakSentenceCommand():
                    if answer := turns.answer_of(command, now):
                        answer.add(command)
                        turns.downlink.send_emotion()
                case StartAnswerCommand():
                    self._turn_taking.start_answer(command, now)
                case PrepareSentenceCommand():
                    self._turn_taking.ending.tentative.prepare(command)
                case TurnProgressCommand():
                    turns.note_progress(command, now)
                case EndAnswerCommand():
                    turns.end(command, now)
                case _:
                    self._apply_device_state(command, now)

    @property
    def busy(self) -> bool:
        """Whether the user speaks, or an answer is awaited or spoken."""
        period = self._turn_taking.uplink.period
        return self._turn_taking.busy or (period is not None and period.speaking)

    def shut_down(self) -> None:
        """Stop the answer because the edge ends, and ask the shard to end the session."""
        if self._turn_taking.busy:
            self._turn_taking.turns.cancel_and_report()
            self._transport.send_command(AnswerStopCommand(self.opened.session))
        self.request_end()

    def request_end(self) -> None:
        """Ask the shard to end the session; the shard ignores this if the session has ended."""
        silent = SessionSilentEvent(device=self.opened.device, session=self.opened.session, reason="leaving")
        self._services.outbox.put(self.opened.shard, silent)

    def adopt(self, agent: str) -> None:
        """Do as an agent says from now on; its digest is empty for the settings alone."""
        self._transport.agent.adopt(agent)

    def check(self, now: float) -> None:
        """Check time limits; call it about once a second."""
        self._turn_taking.check(now)

    def recover(self) -> None:
        """Apologise after a stop of the process: an utterance may have been lost while the device listened."""
        if self._turn_taking.uplink.gate == "open" and not self.busy:
            with self._transport.fields():
                self._turn_taking.fail("interrupted")

    def say_goodbye(self) -> None:
        """Stop the answer because the edge ends, and say goodbye, so that the device opens a session elsewhere."""
        downlink = self._turn_taking.turns.downlink
        if downlink.speaking or downlink.stop_in_doubt:
            self._transport.send_command(AnswerStopCommand(self.opened.session))
        self.close()
        self._transport.send_command(GoodbyeCommand(self.opened.session))

    def close(self) -> None:
        """Stop everything at once; send nothing to the device."""
        self._services.socket.wheel.cancel(self._return_timer)
        self._detected.close()
        self._turn_taking.close()
        if self._native:
            self._native.close()
        ends_at = f"{self.opened.session} {self._stream.newest} {self._transport.sent}"
        self._services.traces.note(self.opened.device, "end", ends_at)
        about = {"session": self.opened.session, "device": self.opened.device}
        log.debug("audio ends", extra={"uplink": self._stream.newest, "downlink": self._transport.sent, **about})

    def _apply_device_state(self, command: EdgeCommand, now: float) -> None:
        """Apply what the device reported to its shard."""
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
                self._services.socket.wheel.set(self._return_timer, now + RETURN_SECONDS, self)
            case _:
                # EdgeDispatcher opens and closes sessions.
                return

    def on_timer(self, now: float) -> None:
        """Repeat what a device that reconnected may have missed: an answer, or `tts stop`.

        While an answer is spoken its `tts stop` is still to come. A device that received `tts stop`, or never received
        `tts start`, is sent nothing: on `tts stop` py-xiaozhi stops recording.
        """
        turns = self._turn_taking.turns
        if turns.replay.device_returned(now):
            self._turn_taking.uplink.shut()
        elif turns.downlink.stop_in_doubt and not turns.downlink.speaking:
            turns.downlink.stop()

    def _note_address(self, now: float) -> None:
        if self._opened_at is not None:
            audio.first_uplink_delay.observe(now - self._opened_at)
            self._opened_at = None
        self._turn_taking.silence.used = True
        address = "{}:{}".format(*self._stream.address) if self._stream.address else ""
        self._services.traces.note(self.opened.device, "audio", f"{self.opened.session} {address}")
        with self._transport.fields():
            log.info("device address", extra={"address": self._stream.address})
            self._turn_taking.turns.downlink.retry(now)
