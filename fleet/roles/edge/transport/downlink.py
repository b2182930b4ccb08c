"""The way from an edge to one device."""

from contextlib import AbstractContextManager

from fleet.core.playout import LEAD, LEAD_OF_INTERRUPTIBLE, SETTLE, Pacing
from fleet.ground.log import fields
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.transport.uplink_stream import UplinkStream
from fleet.wire.dialect import Dialect
from fleet.wire.edge_messages import OpenSessionCommand
from fleet.wire.messages import AudioFormat, DeviceCommand
from fleet.wire.packet import Channel
from fleet.wire.topics import down_topic


class DownlinkTransport:
    """Sends a session's device audio packets and commands, and names the session in the log.

    Args:
        opened: The session.
        dialect: How the device reads commands.
        channel: Seals packets.
        stream: Knows where the device is.
        services: Of the edge.
    """

    def __init__(
        self,
        opened: OpenSessionCommand,
        dialect: Dialect,
        channel: Channel,
        stream: UplinkStream,
        services: EdgeServices,
    ) -> None:
        self.opened = opened
        self._dialect = dialect
        self._channel = channel
        self._stream = stream
        self._socket = services.socket
        self._publisher = services.publisher
        self._topic = down_topic(opened.device)
        self._frame_ms = opened.downlink_frame_ms
        self._sequence = 0
        self.interruptible = False
        """Whether the user interrupts an answer by speaking."""
        self.loss = 0.0
        """Share of the device's own packets that were lost: the best estimate for the way to it."""

    @property
    def session(self) -> str:
        return self.opened.session

    @property
    def downlink(self) -> AudioFormat:
        return AudioFormat(self.opened.downlink_rate, self.opened.downlink_frame_ms)

    @property
    def pacing(self) -> Pacing:
        """How the device is to be fed now."""
        lead = LEAD_OF_INTERRUPTIBLE if self.interruptible else LEAD
        # The loss follows from the played timestamps.
        loss = 0.0 if self.opened.aec else self.loss
        return Pacing(lead, loss, SETTLE if self.opened.clears_on_stop else 0.0)

    @property
    def sent(self) -> int:
        """Packets sent."""
        return self._sequence

    @property
    def addressed(self) -> bool:
        """Whether it is known where the device is."""
        return self._stream.address is not None

    def send_command(self, command: DeviceCommand) -> bool:
        """Publish a command to the device; return False when it could not be sent now."""
        return self._publisher.publish(self._topic, self._dialect.send(command))

    def send_packet(self, packet: bytes) -> None:
        """Seal and send one Opus packet; nothing happens while it is unknown where the device is."""
        address = self._stream.address
        if address is None:
            return
        self._sequence = sequence = self._sequence + 1
        # The timestamp rises with every packet, so that no two share keystream.
        self._socket.send(self._channel.seal(packet, sequence * self._frame_ms, sequence), address)

    def fields(self, turn: str = "") -> AbstractContextManager[None]:
        """Name the session, and the turn where there is one, in all log lines of the block."""
        named = {"turn": turn} if turn else {}
        return fields(session=self.opened.session, device=self.opened.device, **named)
