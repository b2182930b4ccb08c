"""The encrypted audio datagram.

Layout, both directions, big-endian: type 0x01, flags, payload length (2), ssrc (4), timestamp (4), sequence (4), then
one Opus packet under AES-128-CTR whose initial counter block is the 16 header bytes as sent (contract 4.1). There is no
authentication tag, so the server must not trust anything in a packet.

The downlink has flags 0x80, the uplink flags 0, and the downlink's timestamp rises with every packet. So no two packets
of the server share keystream with each other or with the uplink.
"""

import struct
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

HEADER = 16
LARGEST = 1200
"""Bytes of the largest datagram that is sent; 4G paths do not carry larger ones whole."""
DOWNLINK_FLAGS = 0x80
UPLINK_FLAGS = 0

_TYPE = 0x01
_HEADER = struct.Struct(">BBHIII")
_FIELDS = struct.Struct(">xBHIII")
_NONCE = struct.Struct(">BBHIQ")


class Header(NamedTuple):
    """The fields of a well-formed packet; `length` is the payload's, in bytes."""

    flags: int
    length: int
    ssrc: int
    timestamp: int
    sequence: int


def nonce(ssrc: int) -> bytes:
    """Return the 16 nonce bytes for a hello: type 1, flags 0, the ssrc; zeros where the device writes its values."""
    return _NONCE.pack(_TYPE, 0, 0, ssrc, 0)


def parse(datagram: bytes) -> Header | None:
    """Return the header, or None if the datagram is too short, has another type, or its length field is wrong."""
    size = len(datagram) - HEADER
    if size < 0 or datagram[0] != _TYPE:
        return None
    # Built by the base class: the constructor of a named tuple costs as much as the rest of this function.
    header = tuple.__new__(Header, _FIELDS.unpack_from(datagram))
    return header if header.length == size else None


class Channel:
    """Seals and opens the packets of one session under its key.

    Has one cipher context for each direction and sets its counter: a new context for each packet costs six times more.

    Args:
        key: 16 bytes, fresh for every hello.
        ssrc: Of the packets that `seal` returns.
        flags: Of these packets: the server's, or `UPLINK_FLAGS` for who is the device.
    """

    def __init__(self, key: bytes, ssrc: int, flags: int = DOWNLINK_FLAGS) -> None:
        self._ssrc = ssrc
        self._flags = flags
        self._opener = _context(key)
        self._sealer = _context(key)

    def open(self, datagram: bytes) -> bytes:
        """Return the payload of a datagram that `parse` accepted."""
        self._opener.reset_nonce(datagram[:HEADER])
        return self._opener.update(datagram[HEADER:])

    def seal(self, payload: bytes, timestamp: int, sequence: int) -> bytes:
        """Return the datagram of one Opus packet.

        Args:
            payload: One Opus packet, at most `LARGEST - HEADER` bytes.
            timestamp: In milliseconds.
            sequence: Greater than that of every packet sealed before, at least 1.
        """
        header = _HEADER.pack(_TYPE, self._flags, len(payload), self._ssrc, timestamp, sequence)
        self._sealer.reset_nonce(header)
        return header + self._sealer.update(payload)


def _context(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES(key), modes.CTR(bytes(HEADER))).encryptor()
