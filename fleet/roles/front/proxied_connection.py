"""One proxied connection: the device's leg, the broker's leg, and the gate between them."""

import asyncio
from collections.abc import Callable
from functools import partial

from fleet.roles.front.gate import FrontGate, GateStep
from fleet.roles.front.leg import Leg
from fleet.roles.front.limits import FrontLimits
from fleet.wire.mqtt.framing import LARGEST_OF_DEVICE, Kind, Packet, Splitter

SILENT = "silent"
"""The reason if the device sent nothing for one and a half keep-alives."""
_CLOSE_SECONDS = 1.0
_MOST_EARLY = 64
"""Packets that may come with the CONNECT; stock firmware sends none before its CONNACK."""
_LARGEST_EARLY = 16 * 1024
"""Bytes of the CONNECT, and of what is read with it: both are kept for many connections before a login is checked."""
_CONNECT = Kind.CONNECT << 4
"""First byte of every CONNECT; a connection that begins with another byte is closed at once."""


class ProxiedConnection:
    """A device connection, from its first byte to its last.

    A task attends to it only while it begins and while it ends: an idle device costs neither a task nor a timer.
    Packets that come with the CONNECT wait in `_early`, and reading stops until the gate opens.

    Args:
        limits: Of the front.
        attend: Called with the first packet, and with None when it has ended and nobody attends to it.
    """

    def __init__(self, limits: FrontLimits, attend: Callable[["ProxiedConnection", Packet | None], None]) -> None:
        self._limits = limits
        self._attend = attend
        self._splitter = Splitter(_LARGEST_EARLY)
        self._early: list[Packet] | None = None
        """None before the first byte."""
        self._gate: FrontGate | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.device = Leg(self._from_device, partial(self.end, "lost"))
        self.broker = Leg(
            self._from_broker, partial(self.end, "broker lost"), self.device.pause_reading, quick_ack=True
        )
        self._timer = asyncio.get_running_loop().call_later(limits.connect, self.end, "no greeting")
        self.attended = False
        """Whether a task serves or ends it now."""
        self.closed = False
        """Whether both legs are closed."""
        self.reason = ""
        """Why the connection ended; empty before."""

    @property
    def opened(self) -> bool:
        """Whether the device has its CONNACK."""
        return self._gate is not None and self._gate.state == "open"

    def admit(self, gate: FrontGate) -> None:
        self._gate = gate

    async def wait_for(self, happened: Callable[[], bool]) -> None:
        """Wait until something has happened or the connection has ended; it looks whenever it is woken."""
        while not happened() and not self.reason:
            await self._wait()

    async def wait_closed(self) -> None:
        """Wait until both legs are closed."""
        while not self.closed:
            await self._wait()

    def end(self, reason: str) -> None:
        """Mark the connection as ended; the first reason stays. What attends to it then closes both legs."""
        if self.reason:
            return
        self.reason = reason
        self._timer.cancel()
        self.wake()
        if not self.attended:
            self.attended = True
            self._attend(self, None)

    def check(self, now: float) -> None:
        """End it if the device was silent for one and a half keep-alives, or if either peer does not read."""
        for leg in (self.device, self.broker):
            if leg.blocked_since is not None and now - leg.blocked_since > self._limits.stuck:
                self.end("device stuck" if leg is self.device else "broker stuck")
        if self._gate is None or self._gate.state != "open" or self.broker.blocked_since is not None:
            return  # reading from the device is paused
        if 0 < 1.5 * self._gate.keepalive < now - self.device.received_at:
            self.end(SILENT)

    async def close(self) -> None:
        """Close both legs after DISCONNECT, so that the broker does not publish the Will.

        The broker closes its leg when it has read the DISCONNECT. Wait for that: if a new connection of the same device
        came first, some brokers would publish the Will.
        """
        self.device.close()
        if self._gate is not None:
            self.broker.write(self._gate.closing_packets())
            await self.broker.wait_closed(_CLOSE_SECONDS)

    def abort(self) -> None:
        """Close both legs at once; the broker publishes the Will."""
        self.reason = self.reason or "aborted"
        self._timer.cancel()
        self.broker.abort()
        self.device.abort()
        self.closed = True
        self.wake()

    async def _wait(self) -> None:
        """Wait for `wake`. Two can wait: what serves this connection, and the connection that takes over."""
        if self._waiter is None or self._waiter.done():
            self._waiter = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._waiter)

    def wake(self) -> None:
        """Let those who wait look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _from_device(self, data: bytes) -> None:
        if self.reason:
            return
        if self._early is None:
            if data[0] != _CONNECT:
                self.end("no connect")
                return
            self._early = []
        opened = self.opened
        if not opened and len(data) > _LARGEST_EARLY:
            # Before they are cut: that takes time, and nobody has shown a login.
            self.end("impatient")
            return
        packets = self._splitter.feed(data)
        if self._gate is not None and opened:
            self._forward(self._gate, packets)
        elif len(packets) > _MOST_EARLY:
            self.end("impatient")
        elif packets:
            self.device.pause_reading(True)
            self._early += packets
            if not self.attended:
                self.attended = True
                self._timer.cancel()
                self._attend(self, self._early.pop(0))
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
        opened = self.opened
        self._apply(self._gate.from_broker(data))
        if self.opened and not opened:
            self._splitter.largest = LARGEST_OF_DEVICE
            self.wake()
            early, self._early = self._early or [], []
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
