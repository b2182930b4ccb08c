"""Send packets and commands from an edge to one device."""

from contextlib import AbstractContextManager

from fleet.core.firmware_traits import clears_on_stop
from fleet.core.playout_device import LEAD, LEAD_OF_INTERRUPTIBLE, SETTLE, Pacing
from fleet.core.reference import EchoReference
from fleet.core.usual_packets import PacketSink
from fleet.ground.log import fields
from fleet.roles.edge.agents import SessionAgent
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.datagrams import SessionChannel
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire.dialect import Dialect
from fleet.wire.edge_messages import OpenSessionCommand
from fleet.wire.messages import AudioFormat, DeviceCommand
from fleet.wire.topics import down_topic


class NotedChannel:
    """Keeps what is sent, so that the server can cancel the device's echo.

    Args:
        channel: Seals and sends.
        reference: Keeps it.
        opened: The session.
    """

    __slots__ = ("_channel", "_frame_ms", "_reference")

    def __init__(self, channel: SessionChannel, reference: EchoReference, opened: OpenSessionCommand) -> None:
        self._channel, self._reference, self._frame_ms = channel, reference, opened.downlink_frame_ms

    def send(self, payload: bytes, /) -> bool:
        sent = self._channel.send(payload)
        if sent:
            self._reference.note_sent(self._channel.sent * self._frame_ms, payload)
        return sent


class DownlinkTransport:
    """Sends a session's device audio packets and commands, and names the session in the log.

    Args:
        opened: The session.
        dialect: Encodes commands.
        channel: Seals and sends packets.
        stream: Has the device's address.
        services: Of the edge.
    """

    __slots__ = (
        "_channel",
        "_dialect",
        "_services",
        "_stream",
        "agent",
        "interruptible",
        "loss",
        "opened",
        "reference",
    )

    def __init__(
        self,
        opened: OpenSessionCommand,
        dialect: Dialect,
        channel: SessionChannel,
        stream: UplinkStream,
        services: EdgeServices,
    ) -> None:
        self.opened = opened
        self._dialect = dialect
        self._channel = channel
        self._stream = stream
        self._services = services
        self.agent = SessionAgent(services.agents, services.voice, services.tasks, opened)
        self.interruptible = False
        """Whether the user may interrupt an answer by speaking."""
        self.reference: EchoReference | None = None
        """Keeps what is sent, if the server cancels the device's echo."""
        self.loss = 0.0
        """Share of lost uplink packets, the best estimate for the downlink."""

    @property
    def echoes(self) -> bool:
        """Whether the microphone's audio holds the answer's echo."""
        return self.opened.aec and self.reference is None

    @property
    def session(self) -> str:
        return self.opened.session

    @property
    def downlink(self) -> AudioFormat:
        return AudioFormat(self.opened.downlink_rate, self.opened.downlink_frame_ms)

    @property
    def pacing(self) -> Pacing:
        """The pacing for the next answer."""
        lead = LEAD_OF_INTERRUPTIBLE if self.interruptible else LEAD
        # A device with `aec` reports the timestamps that it plays; `PlaybackGauge` finds losses from them.
        loss = 0.0 if self.opened.aec else self.loss
        clears = clears_on_stop(self.opened.board, self.opened.firmware)
        return Pacing(lead, loss, SETTLE if clears else 0.0)

    @property
    def sink(self) -> PacketSink:
        """Encrypts and sends Opus packets. Only timers send."""
        return NotedChannel(self._channel, self.reference, self.opened) if self.reference else self._channel

    @property
    def sent(self) -> int:
        """Number of packets sent."""
        return self._channel.sent

    @property
    def addressed(self) -> bool:
        """Whether the device's address is known."""
        return self._stream.address is not None

    def send_command(self, command: DeviceCommand) -> bool:
        """Publish a command to the device; return False if it could not be sent now."""
        return self._services.publisher.publish(down_topic(self.opened.device), self._dialect.send(command))

    def fields(self, turn: str = "") -> AbstractContextManager[None]:
        """Add the session, and the turn if there is one, to all log lines of the block."""
        named = {"turn": turn} if turn else {}
        return fields(session=self.opened.session, device=self.opened.device, **named)
