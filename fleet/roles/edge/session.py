"""One session on its edge: packets and the shard's commands come in; packets and commands to the device go out."""

import logging

from fleet.core.silence import UNUSED_SECONDS
from fleet.ground.metrics import audio
from fleet.roles.edge.detected import DetectedTextFilter
from fleet.roles.edge.downlink_transport import DownlinkTransport
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.datagrams import Address, PlainChannel
from fleet.roles.edge.transport.echo import EchoResponder
from fleet.roles.edge.transport.timer_wheel import Timer
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.roles.edge.turn_taking import TurnTaking
from fleet.wire import dialects, echo
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
from fleet.wire.packet import Header
from fleet.wire.topics import down_topic

log = logging.getLogger(__name__)

RETURN_SECONDS = 0.5
"""Time for a device that reconnected to send a new hello. What is sent for the old session after it would disturb the
new session."""


class SessionParts:
    """What a session needs once a packet or a command comes for it.

    Args:
        opened: What the session's shard agreed with the device.
        services: Of the edge.
        now: When the session was opened.
    """

    __slots__ = ("aec", "detected", "echo", "native", "return_timer", "stream", "transport", "turn_taking", "uplink")

    def __init__(self, opened: OpenSessionCommand, services: EdgeServices, now: float) -> None:
        channel = services.socket.channel(bytes.fromhex(opened.key), opened.ssrc, opened.downlink_frame_ms)
        self.native = None if isinstance(channel, PlainChannel) else channel
        uplink = AudioFormat(opened.uplink_rate, opened.uplink_frame_ms)
        self.stream = UplinkStream(channel, uplink, services.counters, now)
        dialect = dialects.find(opened.dialect)
        self.transport = DownlinkTransport(opened, dialect, channel, self.stream, services)
        with self.transport.fields():
            self.turn_taking = TurnTaking(self.transport, services, now)
        self.uplink, self.aec = self.turn_taking.uplink, opened.aec
        self.detected = DetectedTextFilter(self.transport, services, self.turn_taking)
        self.echo = EchoResponder(opened.key, services.socket)
        self.return_timer = Timer()

    def apply_device_state(self, command: EdgeCommand, now: float) -> None:
        """Apply what the device reported to its shard."""
        match command:
            case StartListeningCommand():
                self.turn_taking.start_listening(command.mode, now)
            case StopListeningCommand():
                self.turn_taking.stop_listening(now)
            case DetectedTextCommand():
                self.detected.take(command.text, now)
            case AbortAnswerCommand():
                self.turn_taking.abort(now)
            case _:
                # EdgeDispatcher opens and closes sessions.
                return


class EdgeSession:
    """One session's audio.

    Args:
        opened: What the session's shard agreed with the device.
        services: Of the edge.
        now: The time.
    """

    __slots__ = ("_addressed", "_made", "_opened_at", "_services", "opened")

    def __init__(self, opened: OpenSessionCommand, services: EdgeServices, now: float) -> None:
        self.opened = opened
        self._services = services
        self._opened_at = now
        self._addressed = False
        """Whether a packet has shown an address."""
        self._made: SessionParts | None = None
        if services.agents.known(opened.agent) is None:
            # It begins to load its agent.
            self._made = self.parts

    @property
    def parts(self) -> SessionParts:
        """The session's parts, made when they are needed: they are most of what a session costs its edge."""
        if self._made is None:
            self._made = SessionParts(self.opened, self._services, self._opened_at)
        return self._made

    def receive(self, header: Header, datagram: bytes, address: Address, now: float) -> None:
        """Take one packet that carries this session's ssrc."""
        parts = self.parts
        stream, turn_taking = parts.stream, parts.turn_taking
        earlier = stream.address
        payload = stream.admit(header, datagram, address, now)
        if stream.address != earlier:
            self._note_address(now)
        if payload is None:
            if header.flags == echo.FLAGS:
                parts.echo.take(datagram, address)
            return
        if header.timestamp and parts.aec:
            turn_taking.turns.downlink.note_played(header.timestamp, now)
        uplink = parts.uplink
        if stream.proved:
            uplink.rejoin(stream.proved, now)
            stream.proved = []
        uplink.push(header.sequence, payload, now, header.timestamp)
        # With echo cancellation in the server a device always sends.
        if payload and uplink.gate != "open" and not parts.aec:
            turn_taking.manual_interruption.note_packet(now)

    def receive_admitted(self, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """Take one packet that the native part of the socket has admitted."""
        # The same as at the end of `receive`: one more call for each packet would cost more than these lines.
        parts = self._made or self.parts
        if parts.aec and timestamp:
            parts.turn_taking.turns.downlink.note_played(timestamp, now)
        uplink = parts.uplink
        if not uplink.push(sequence, payload, now, timestamp) and uplink.gate != "open" and not parts.aec:
            parts.turn_taking.manual_interruption.note_packet(now)

    async def take(self, command: EdgeCommand, now: float) -> None:
        """Carry out a command of the shard."""
        parts = self.parts
        turns = parts.turn_taking.turns
        with parts.transport.fields(getattr(command, "turn", "")):
            log.debug("command received", extra={"kind": command.kind})
            match command:
                case SpeakSentenceCommand():
                    if answer := turns.answer_of(command, now):
                        answer.add(command)
                        turns.downlink.send_emotion()
                case StartAnswerCommand():
                    parts.turn_taking.start_answer(command, now)
                case PrepareSentenceCommand():
                    parts.turn_taking.ending.tentative.prepare(command)
                case TurnProgressCommand():
                    turns.note_progress(command, now)
                case EndAnswerCommand():
                    turns.end(command, now)
                case DeviceReturnedCommand():
                    self._services.socket.wheel.set(parts.return_timer, now + RETURN_SECONDS, self)
                case _:
                    parts.apply_device_state(command, now)

    @property
    def busy(self) -> bool:
        """Whether the user speaks, or an answer is awaited or spoken."""
        if self._made is None:
            return False
        turn_taking = self._made.turn_taking
        period = turn_taking.uplink.period
        return turn_taking.busy or (period is not None and period.speaking)

    def shut_down(self) -> None:
        """Stop the answer because the edge ends, and ask the shard to end the session."""
        if self._made and self._made.turn_taking.busy:
            self._made.turn_taking.turns.cancel_and_report()
            self._made.transport.send_command(AnswerStopCommand(self.opened.session))
        self.request_end()

    def request_end(self) -> None:
        """Ask the shard to end the session; the shard ignores this if the session has ended."""
        silent = SessionSilentEvent(device=self.opened.device, session=self.opened.session, reason="leaving")
        self._services.outbox.put(self.opened.shard, silent)

    def adopt(self, agent: str) -> None:
        """Do as an agent says from now on; its digest is empty for the settings alone."""
        if self._made or agent != self.opened.agent:
            self.parts.transport.agent.adopt(agent)

    def check(self, now: float) -> None:
        """Check time limits; call it about once a second."""
        if self._made or now - self._opened_at >= UNUSED_SECONDS:
            self.parts.turn_taking.check(now)

    def recover(self) -> None:
        """Apologise after a stop of the process: an utterance may have been lost while the device listened."""
        parts = self._made
        if parts and parts.turn_taking.uplink.gate == "open" and not self.busy:
            with parts.transport.fields():
                parts.turn_taking.fail("interrupted")

    def say_goodbye(self) -> None:
        """Stop the answer because the edge ends, and say goodbye, so that the device opens a session elsewhere."""
        opened, parts = self.opened, self._made
        if parts and ((downlink := parts.turn_taking.turns.downlink).speaking or downlink.stop_in_doubt):
            parts.transport.send_command(AnswerStopCommand(opened.session))
        self.close()
        goodbye = dialects.find(opened.dialect).send(GoodbyeCommand(opened.session))
        self._services.publisher.publish(down_topic(opened.device), goodbye)

    def close(self) -> None:
        """Stop everything at once; send nothing to the device."""
        received = sent = 0
        if parts := self._made:
            self._services.socket.wheel.cancel(parts.return_timer)
            parts.detected.close()
            parts.turn_taking.close()
            if parts.native:
                parts.native.close()
            received, sent = parts.stream.newest, parts.transport.sent
        self._services.traces.note(self.opened.device, "end", f"{self.opened.session} {received} {sent}")
        about = {"session": self.opened.session, "device": self.opened.device}
        log.debug("audio ends", extra={"uplink": received, "downlink": sent, **about})

    def on_timer(self, now: float) -> None:
        """Repeat what a device that reconnected may have missed: an answer, or `tts stop`.

        While an answer is spoken its `tts stop` is still to come. A device that received `tts stop`, or never received
        `tts start`, is sent nothing: on `tts stop` py-xiaozhi stops recording.
        """
        turns = self.parts.turn_taking.turns
        if turns.replay.device_returned(now):
            self.parts.turn_taking.uplink.shut()
        elif turns.downlink.stop_in_doubt and not turns.downlink.speaking:
            turns.downlink.stop()

    def _note_address(self, now: float) -> None:
        if not self._addressed:
            audio.first_uplink_delay.observe(now - self._opened_at)
            self._addressed = True
        parts = self.parts
        parts.turn_taking.silence.used = True
        address = "{}:{}".format(*parts.stream.address) if parts.stream.address else ""
        self._services.traces.note(self.opened.device, "audio", f"{self.opened.session} {address}")
        with parts.transport.fields():
            log.info("device address", extra={"address": parts.stream.address})
            parts.turn_taking.turns.downlink.retry(now)
