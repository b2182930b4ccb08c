"""One device of a crowd: a bare MQTT connection, and the tools of its board."""

import asyncio
import json
from typing import Protocol, cast

from fleet.wire.mqtt import packets
from fleet.wire.mqtt.framing import Kind as PacketKind
from fleet.wire.mqtt.framing import Packet, Splitter
from fleet.workbench.sim.bootstrap.ota import MqttAccess
from fleet.workbench.sim.crowd.kinds import Kind
from fleet.workbench.sim.messages.message import JsonObject, member, text
from fleet.workbench.sim.tools.board import Board


class Household(Protocol):
    """What a device has around it."""

    def connected(self, device: "Member") -> None:
        """Take that the broker has accepted a device."""

    def lost(self, device: "Member") -> None:
        """Take that a device's connection has ended, or was refused."""

    def asked(self, device: "Member", request: JsonObject) -> None:
        """Take a request to a device's tools."""

    def ordered(self, device: "Member", message: JsonObject) -> None:
        """Take any other message to a device."""


class Member(asyncio.Protocol):
    """One device.

    Args:
        number: In the crowd.
        mac: Its own.
        profile: The name of its board's.
        kind: The board with the version that runs.
        crowd: Takes what happens.
    """

    __slots__ = (
        "_crowd",
        "_splitter",
        "_transport",
        "access",
        "board",
        "busy",
        "kind",
        "listed",
        "mac",
        "number",
        "profile",
        "up",
    )

    def __init__(self, number: int, mac: str, profile: str, kind: Kind, crowd: Household) -> None:
        self.number, self.mac, self.profile, self.kind = number, mac, profile, kind
        self.board = Board()
        self.up = False
        """Whether the broker has accepted its connection, and it has not ended."""
        self.listed = False
        """Whether the server has asked for its tools."""
        self.busy = False
        """Whether it plays a notification."""
        self._crowd = crowd
        self._transport: asyncio.Transport | None = None
        self._splitter = Splitter()
        self.access: MqttAccess | None = None
        """What the last bootstrap said."""

    async def connect(self, access: MqttAccess, source: str) -> None:
        """Begin to sign in; the crowd hears of the end.

        Raises:
            OSError: The broker cannot be reached.
        """
        host, _, port = access.endpoint.partition(":")
        loop, local = asyncio.get_running_loop(), (source, 0) if source else None
        self._splitter = Splitter()
        await loop.create_connection(lambda: self, host, int(port or 1883), local_addr=local)
        self._send(
            packets.connect(packets.Connect(access.client_id, access.username, access.password, access.keepalive))
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # Those of uvloop are of no asyncio class.

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport, self.up = None, False
        self._crowd.lost(self)

    def data_received(self, data: bytes) -> None:
        for packet in self._splitter.feed(data):
            if packet.kind == PacketKind.PUBLISH:
                self._take(packet)
            elif packet.kind == PacketKind.CONNACK:
                self._answered(packet)

    def ping(self) -> None:
        """Keep the connection."""
        self._send(packets.PINGREQ)

    def reply(self, answer: str) -> None:
        """Send what the tools answer."""
        if self.access is not None:
            content = f'{{"session_id":"","type":"mcp","payload":{answer}}}'
            self._send(packets.publish(self.access.publish_topic, content.encode()))

    def leave(self) -> None:
        """Be switched off, or restart: the connection ends without a goodbye."""
        if self._transport is not None:
            self._transport.abort()

    def _answered(self, packet: Packet) -> None:
        answer = packets.parse_connack(packet)
        self.up = answer is not None and answer.code == 0
        if self.up:
            self._crowd.connected(self)
        else:
            self.leave()

    def _take(self, packet: Packet) -> None:
        found = packets.parse_publish(packet)
        try:
            message = json.loads(found.payload) if found else None
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict):
            return
        if text(message, "type") == "mcp":
            self._crowd.asked(self, member(message, "payload"))
        else:
            self._crowd.ordered(self, message)

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
