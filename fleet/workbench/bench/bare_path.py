"""The process with the bare path: `python -m fleet.workbench.bench.bare_path`; commands on standard input.

What no edge in Python can avoid, on the tick of the edge: receive, find the key, decrypt; encrypt, send. There are no
sessions, no reordering, no schedule, no audio input. It measures the machine itself, whose speed may vary by two.
"""

import asyncio
import itertools
import socket
import struct
import sys
import time
from typing import Any

from fleet.ground import runtime
from fleet.roles.edge.transport.timer_wheel import TICK, tick_of
from fleet.wire.packet import Channel
from fleet.workbench.bench import control, streams

_HEADER = struct.Struct(">BBHIII")
_BUFFER = 4 * 1024 * 1024
_SLOTS = round(streams.FRAME_MS / 1000 / TICK)
_PAYLOAD = b"\x58" + bytes(110)


class Path:
    """One stream's key, address and counter."""

    __slots__ = ("address", "channel", "sent")

    def __init__(self, number: int) -> None:
        self.channel = Channel(streams.key(number), streams.ssrc(number))
        self.address: tuple[str, int] | None = None
        self.sent = 0


class BarePath:
    """All streams at one socket."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.setblocking(False)
        self._socket.bind((streams.HOST, 0))
        self._paths: dict[int, Path] = {}
        self._slots: list[list[Path]] = [[] for _ in range(_SLOTS)]
        self._turn = itertools.cycle(self._slots)
        self._speaking = False
        self._received = 0
        self._tick()

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        match command["do"]:
            case "open":
                for number in range(command["streams"]):
                    path = self._paths[streams.ssrc(number)] = Path(number)
                    self._slots[number % _SLOTS].append(path)
                return {"port": self._socket.getsockname()[1]}
            case "speak":
                self._speaking = True
        return {"cpu": time.process_time(), "at": time.monotonic(), "counters": {"received": self._received}}

    def _tick(self) -> None:
        self._drain()
        if self._speaking:
            self._send()
        self._loop.call_at((tick_of(self._loop.time()) + 1) * TICK, self._tick)

    def _drain(self) -> None:
        receive, paths = self._socket.recvfrom, self._paths
        while True:
            try:
                datagram, address = receive(2048)
            except BlockingIOError:
                return
            ssrc = _HEADER.unpack_from(datagram)[3]
            path = paths[ssrc]
            path.channel.open(datagram)
            path.address = address
            self._received += 1

    def _send(self) -> None:
        for path in next(self._turn):
            if path.address:
                path.sent += 1
                datagram = path.channel.seal(_PAYLOAD, path.sent * streams.FRAME_MS, path.sent)
                self._socket.sendto(datagram, path.address)


def main() -> int:
    return runtime.run(lambda: control.obey(lambda: BarePath().do))


if __name__ == "__main__":
    sys.exit(main())
