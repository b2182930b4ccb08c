"""One proxied connection: the device's leg, the broker's leg, and the gate between them."""

import asyncio

from fleet.roles.front.gate import FrontGate, GateStep
from fleet.roles.front.leg import Leg
from fleet.roles.front.limits import FrontLimits
from fleet.wire.mqtt.framing import Kind, Packet, Splitter

SILENT = "silent"
"""The reason if the device sent nothing for one and a half keep-alives."""
_CLOSE_SECONDS = 1.0
_CONNECT = Kind.CONNECT << 4
"""First byte of every CONNECT; a connection that begins with another byte is closed at once."""


class ProxiedConnection:
    """A device connection, from its first byte to its last.

    The CONNECT, and what a device sends in the same chunk, waits in `_early`; then reading stops until the gate opens.
    """

    def __init__(self, limits: FrontLimits) -> None:
        self._limits = limits
        self._splitter = Splitter()
        self._early: list[Packet] = []
        self._gate: FrontGate | None = None
        self._begun = False
        self._connect_received = asyncio.Event()
        self.device = Leg(self._from_device, lambda: self.end("lost"))
        self.broker = Leg(self._from_broker, lambda: self.end("broker lost"), self.device.pause_reading, quick_ack=True)
        self.opened = asyncio.Event()
        """Set when the device has its CONNACK, or when the connection has ended."""
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when both connections are closed."""
        self.reason = ""
        """Why the connection ended; empty before."""

    async def first_packet(self) -> Packet | None:
        """Return the device's first packet, or None if the connection ends first or `limits.connect` has passed."""
        try:
            async with asyncio.timeout(self._limits.connect):
                await self._connect_received.wait()
        except TimeoutError:
            self.end("no greeting")
        return self._early.pop(0) if self._early else None

    def admit(self, gate: FrontGate) -> None:
        self._gate = gate

    def end(self, reason: str) -> None:
        """Mark the connection as ended; the first reason stays. A task that waits for `ended` closes both legs."""
        if self.reason:
            return
        self.reason = reason
        for event in (self._connect_received, self.opened, self.ended):
            event.set()

    def check(self, now: float) -> None:
        """End it if the device was silent for one and a half keep-alives, or if either peer does not read."""
        for leg in (self.device, self.broker):
            if leg.blocked_since is not None and now - leg.blocked_since > self._limits.stuck:
                self.end("device stuck" if leg is self.device else "broker stuck")
        if self._gate is None or not self.opened.is_set() or self.broker.blocked_since is not None:
            return  # reading from the device is paused
        if self._gate.keepalive and now - self.device.received_at > 1.5 * self._gate.keepalive:
            self.end(SILENT)

    async def close(self) -> None:
        """Close both legs after DISCONNECT, so that the broker does not publish the Will.

        The broker closes its leg when it has read the DISCONNECT. Wait for that: if a new connection of the same device
        came first, some brokers would publish the Will.
        """
        self.end("closed")
        self.device.close()
        if self._gate is not None:
            self.broker.write(self._gate.closing_packets())
            await self.broker.wait_closed(_CLOSE_SECONDS)

    def abort(self) -> None:
        """Close both legs at once; the broker publishes the Will."""
        self.broker.abort()
        self.device.abort()
        self.closed.set()

    def _from_device(self, data: bytes) -> None:
        if self.reason:
            return
        if not self._begun and data[0] != _CONNECT:
            self.end("no connect")
            return
        self._begun = True
        packets = self._splitter.feed(data)
        if self._gate is not None and self._gate.state == "open":
            self._forward(self._gate, packets)
        elif packets:
            self._early += packets
            self._connect_received.set()
            self.device.pause_reading(True)
        if self._splitter.fault:
            self.end(self._splitter.fault)

    def _forward(self, gate: FrontGate, packets: list[Packet]) -> None:
        step = GateStep()
        for packet in packets:
            gate.from_device(packet, step)
            if step.end:
                break
        self._apply(step)

    def _from_broker(self, data: bytes) -> None:
        if self.reason or self._gate is None:
            return
        step = self._gate.from_broker(data)
        self._apply(step)
        if self._gate.state == "open" and not self.opened.is_set():
            self.opened.set()
            early, self._early = self._early, []
            self._forward(self._gate, early)
            self.device.pause_reading(False)

    def _apply(self, step: GateStep) -> None:
        self.broker.write(step.to_broker)
        if step.to_device:
            self.device.write(step.to_device)
            if self.device.backlog > self._limits.backlog:
                self.end("device stuck")
        if step.end:
            self.end(step.end)
