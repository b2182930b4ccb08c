"""An echo request under a session's key: it tests whether audio reaches an edge, and whether the edge's audio returns.

The datagram belongs to the session (`fleet.wire.packet`) and has the flag 0x40, which no device sets. Its payload is a
mark and a token, under the session's key. The answer repeats both under the same sequence number with the downlink's
flag added, so that no keystream is used twice. It is exactly as long as the request, and an edge answers only requests
under a valid key: an attacker cannot amplify traffic, and a replayed request yields the same 32 bytes again.
"""

import struct

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fleet.wire.packet import DOWNLINK_FLAGS, HEADER

FLAGS = 0x40
TOKEN = 8
"""Bytes of the token, chosen by the sender of the request."""

_MARK = b"fleet?ok"
_HEADER = struct.Struct(">BBHIII")
_LENGTH = len(_MARK) + TOKEN


def ask(key: bytes, ssrc: int, number: int, token: bytes) -> bytes:
    """Return a request; `number` is different for each request of a session, `token` has 8 bytes."""
    return _seal(key, _HEADER.pack(1, FLAGS, _LENGTH, ssrc, 0, number), _MARK + token)


def answer(key: bytes, question: bytes) -> bytes | None:
    """Return the answer to a datagram that `fleet.wire.packet.parse` accepted; None if it is not a genuine request."""
    if len(question) != HEADER + _LENGTH:
        return None
    header = question[:HEADER]
    payload = _crypt(key, header, question[HEADER:])
    if not payload.startswith(_MARK):
        return None
    return _seal(key, header[:1] + bytes((FLAGS | DOWNLINK_FLAGS,)) + header[2:], payload)


def read(key: bytes, datagram: bytes) -> bytes | None:
    """Return the token of an answer, or None if the datagram is not an answer."""
    if len(datagram) != HEADER + _LENGTH or datagram[1] != FLAGS | DOWNLINK_FLAGS:
        return None
    payload = _crypt(key, datagram[:HEADER], datagram[HEADER:])
    return payload[len(_MARK) :] if payload.startswith(_MARK) else None


def _seal(key: bytes, header: bytes, payload: bytes) -> bytes:
    return header + _crypt(key, header, payload)


def _crypt(key: bytes, header: bytes, text: bytes) -> bytes:
    return Cipher(algorithms.AES(key), modes.CTR(header)).encryptor().update(text)
