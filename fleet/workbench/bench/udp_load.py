"""The process that plays the devices: `python -m fleet.workbench.bench.udp_load`; commands on standard input.

It sends and takes packets on a tick of its own and never waits at a socket: waking a waiting reader would be charged to
the edge's `sendto`, which on a network card it is not.
"""

import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from fleet.wire import toc
from fleet.workbench.bench import control, sounds, streams

TICK = 0.002
_SOCKETS = 8
_BUFFER = 4 * 1024 * 1024
_HEADER = struct.Struct(">BBHIII")


class Stream:
    """One device's counters and cipher."""

    __slots__ = ("_cipher", "_start", "heard", "newest", "sent")

    def __init__(self, ssrc: int, key: bytes) -> None:
        self._cipher: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._start = ssrc
        self.sent = 0
        self.newest = 0
        """Highest sequence number that came."""
        self.heard = False
        """Whether the first packet that came was audio under this stream's key."""

    def seal(self, payload: bytes) -> bytes:
        self.sent += 1
        header = _HEADER.pack(1, 0, len(payload), self._start, 0, self.sent)
        self._cipher.reset_nonce(header)
        return header + self._cipher.update(payload)

    def take(self, datagram: bytes, sequence: int) -> None:
        if not self.newest:
            self._cipher.reset_nonce(datagram[:16])
            self.heard = toc.duration_ms(self._cipher.update(datagram[16:])) == streams.FRAME_MS
        self.newest = sequence


class Load:
    """Many devices at a few sockets."""

    def __init__(self) -> None:
        self._packets = sounds.packets(sounds.room(sounds.UPLINK_RATE), sounds.UPLINK_RATE)
        self._sockets = [_open_socket() for _ in range(_SOCKETS)]
        self._streams: list[Stream] = []
        self._by_ssrc: dict[int, Stream] = {}
        self._port = 0
        self._started: float | None = None
        self._begun = 0
        self._counts = {"sent": 0, "bytes_sent": 0, "received": 0, "bytes_received": 0, "lost": 0, "strange": 0}

    def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        match command["do"]:
            case "open":
                found = _sessions(command["sessions"]) if "sessions" in command else _agreed(command["streams"])
                self._by_ssrc = {ssrc: Stream(ssrc, key) for ssrc, key in found.items()}
                self._streams, self._port = list(self._by_ssrc.values()), command["port"]
            case "send":
                self._started, self._begun = time.monotonic(), 0
            case "rest":
                self._started = None
        heard = sum(stream.heard for stream in self._streams)
        return {**self._counts, "cpu": time.process_time(), "at": time.monotonic(), "heard": heard}

    def tick(self) -> None:
        """Send what is due and take what came."""
        for turn in self._due(time.monotonic()):
            number = turn % len(self._streams)
            # Each device is somewhere else in the same sound.
            payload = self._packets[(turn // len(self._streams) + 7 * number) % len(self._packets)]
            datagram = self._streams[number].seal(payload)
            self._sockets[number % _SOCKETS].sendto(datagram, (streams.HOST, self._port))
            self._counts["sent"] += 1
            self._counts["bytes_sent"] += len(datagram)
        for sock in self._sockets:
            self._drain(sock)

    def _due(self, now: float) -> Iterator[int]:
        if self._started is None:
            return
        until = int((now - self._started) * streams.PACKETS_A_SECOND * len(self._streams))
        yield from range(self._begun, until)
        self._begun = until

    def _drain(self, sock: socket.socket) -> None:
        counts = self._counts
        while True:
            try:
                datagram = sock.recv(2048)
            except BlockingIOError:
                return
            kind, _, _, ssrc, _, sequence = _HEADER.unpack_from(datagram)
            stream = self._by_ssrc.get(ssrc)
            if kind != 1 or stream is None:
                counts["strange"] += 1
                continue
            counts["received"] += 1
            counts["bytes_received"] += len(datagram)
            counts["lost"] += sequence - stream.newest - 1
            stream.take(datagram, sequence)


def _agreed(count: int) -> dict[int, bytes]:
    """Return ssrc and key of streams without a server that assigns them."""
    return {streams.ssrc(number): streams.key(number) for number in range(count)}


def _sessions(found: list[dict[str, str]]) -> dict[int, bytes]:
    """Return ssrc and key of sessions, from the `udp` of the answers to their hellos."""
    return {int(udp["nonce"][8:16], 16): bytes.fromhex(udp["key"]) for udp in found}


def _open_socket() -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
    opened.bind((streams.HOST, 0))
    opened.setblocking(False)
    return opened


def main() -> int:
    """Obey until standard input is closed."""
    load, rest = Load(), b""
    due = time.monotonic()
    while True:
        due = max(due + TICK, time.monotonic())
        readable, _, _ = select.select([0], [], [], max(0.0, due - time.monotonic()))
        if readable:
            data = os.read(0, 65536)
            if not data:
                return 0
            *commands, rest = (rest + data).split(b"\n")
            for command in commands:
                control.answer(load.do(json.loads(command)))
        load.tick()


if __name__ == "__main__":
    sys.exit(main())
