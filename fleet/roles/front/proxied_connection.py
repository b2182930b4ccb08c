"""One device's way through the front: its connection, the one to the broker in its name, and the gate between them."""

import asyncio

from fleet.roles.front.gate import FrontGate, GateStep
from fleet.roles.front.leg import Leg
from fleet.roles.front.limits import FrontLimits
from fleet.wire.mqtt.framing import Kind, Packet, Splitter

SILENT = "silent"
"""The reason of a connection whose device was not heard for one and a half keep-alives."""
_CLOSE_SECONDS = 1.0
_CONNECT = Kind.CONNECT << 4
"""First byte of every CONNECT: whoever speaks something else is told apart at once."""


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
        self._greeted = asyncio.Event()
        self.device = Leg(self._from_device, lambda: self.end("lost"))
        self.broker = Leg(self._from_broker, lambda: self.end("broker lost"), self.device.hold, prompt=True)
        self.opened = asyncio.Event()
        """Set when the device has its CONNACK, and when the connection has ended without."""
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()
        """Set when both connections are closed."""
        self.reason = ""
        """Why it ended; empty while it has not."""

    async def first_packet(self) -> Packet | None:
        """Return the device's first packet, or None when the connection ends or the time is over first."""
        try:
            async with asyncio.timeout(self._limits.greeting):
                await self._greeted.wait()
        except TimeoutError:
            self.end("no greeting")
        return self._early.pop(0) if self._early else None

    def admit(self, gate: FrontGate) -> None:
        self._gate = gate

    def end(self, reason: str) -> None:
        """End it; the first reason stays. Who waits for `ended` then closes the connections."""
        if self.reason:
            return
        self.reason = reason
        for event in (self._greeted, self.opened, self.ended):
            event.set()

    def check(self, now: float) -> None:
        """End it if the device is silent for one and a half keep-alives, or either end does not read."""
        for side in (self.device, self.broker):
            if side.stuck is not None and now - side.stuck > self._limits.stuck:
                self.end("device stuck" if side is self.device else "broker stuck")
        if self._gate is None or not self.opened.is_set() or self.broker.stuck is not None:
            return  # it is not being read from
        if self._gate.keepalive and now - self.device.heard > 1.5 * self._gate.keepalive:
            self.end(SILENT)

    async def close(self) -> None:
        """Close both connections in order; the broker does not publish the Will.

        It closes when it has read the DISCONNECT. Waiting for that keeps a new connection of the same device from
        overtaking it, for which some brokers would publish the Will.
        """
        self.end("closed")
        self.device.close()
        if self._gate is not None:
            self.broker.write(self._gate.closing_packets())
            await self.broker.wait_closed(_CLOSE_SECONDS)

    def cut(self) -> None:
        """Close both connections at once; the broker publishes the Will."""
        self.broker.cut()
        self.device.cut()
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
            self._pass_on(self._gate, packets)
        elif packets:
            self._early += packets
            self._greeted.set()
            self.device.hold(True)
        if self._splitter.fault:
            self.end(self._splitter.fault)

    def _pass_on(self, gate: FrontGate, packets: list[Packet]) -> None:
        step = GateStep()
        for packet in packets:
            gate.from_device(packet, step)
            if step.end:
                break
        self._carry_out(step)

    def _from_broker(self, data: bytes) -> None:
        if self.reason or self._gate is None:
            return
        step = self._gate.from_broker(data)
        self._carry_out(step)
        if self._gate.state == "open" and not self.opened.is_set():
            self.opened.set()
            early, self._early = self._early, []
            self._pass_on(self._gate, early)
            self.device.hold(False)

    def _carry_out(self, step: GateStep) -> None:
        self.broker.write(step.to_broker)
        self.device.write(step.to_device)
        if self.device.backlog > self._limits.backlog:
            self.end("device stuck")
        if step.end:
            self.end(step.end)
