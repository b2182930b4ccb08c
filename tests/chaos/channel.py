"""A device's audio channel: sealed packets up, counted packets down; and the packets of what is said."""

import asyncio
from collections.abc import Callable
from functools import cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.workbench.conformance.steering import voice
from fleet.workbench.sim.audio.encoder import encode_all
from fleet.workbench.sim.connection.udp_socket import Address, UdpSocket
from fleet.workbench.sim.messages.server_hello import ServerHello
from fleet.workbench.sim.scripted.microphone import silence

FRAME_MS = 60
FRAME = FRAME_MS / 1000
HEADER = 16
SAID_SECONDS = 0.7
SILENT_SECONDS = 0.3


class Channel:
    """An open channel.

    Args:
        hello: The server's.
        on_packet: Told when a packet that firmware would play arrived.
    """

    def __init__(self, hello: ServerHello, on_packet: Callable[[float], None]) -> None:
        self.silence = quiet()
        self._hello = hello
        self._on_packet = on_packet
        self._sent = 0
        self._last = 0
        self._socket = UdpSocket(self._receive)
        self._socket.open("0.0.0.0")

    def send(self, payload: bytes) -> None:
        self._sent += 1
        nonce = self._hello.nonce
        header = b"".join((nonce[:2], len(payload).to_bytes(2), nonce[4:8], bytes(4), self._sent.to_bytes(4)))
        context = Cipher(algorithms.AES(self._hello.key), modes.CTR(header)).encryptor()
        self._socket.send(header + context.update(payload), (self._hello.server, self._hello.port))

    def close(self) -> None:
        self._socket.close()

    def _receive(self, data: bytes, source: Address, port: int, at: float) -> None:
        sequence = int.from_bytes(data[12:16])
        fits = len(data) > HEADER and data[0] == 1 and data[4:8] == self._hello.nonce[4:8] and sequence > self._last
        if fits:
            self._last = sequence
            self._on_packet(at)


@cache
def speech(mark: int) -> list[bytes]:
    """Return the packets of somebody who says a mark; the silence at its end begins the end of the utterance."""
    return encode_all(voice.say(mark, SAID_SECONDS) + silence(SILENT_SECONDS), FRAME_MS)


@cache
def quiet() -> bytes:
    """Return a packet of silence, as the encoder makes it after a while of it."""
    return encode_all(silence(2.0), FRAME_MS)[-1]


def now() -> float:
    return asyncio.get_running_loop().time()
