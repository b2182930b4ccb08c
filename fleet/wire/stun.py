"""STUN (RFC 5389): a binding request and its answer with the sender's public address.

Only IPv4: the devices' firmware supports nothing else.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Final

TRANSACTION_BYTES: Final = 12

_HEADER: Final = struct.Struct("!HHI12s")
_ATTRIBUTE: Final = struct.Struct("!HH")
_ADDRESS: Final = struct.Struct("!xBHI")
_ERROR: Final = struct.Struct("!2xBB")
_COOKIE: Final = 0x2112A442
_REQUEST, _SUCCESS, _FAILURE = 0x0001, 0x0101, 0x0111
_MAPPED, _ERROR_CODE, _XOR_MAPPED = 0x0001, 0x0009, 0x0020
_IPV4: Final = 0x01
_OPTIONAL: Final = 0x8000
"""An unknown attribute from here on may be skipped (section 15)."""
_HARMLESS: Final = frozenset({0x0002, 0x0003, 0x0004, 0x0005, 0x0006, 0x0008, 0x000B, 0x0014, 0x0015})
"""Attributes of servers that do not concern the address: those of RFC 3489 and of logins."""


@dataclass(frozen=True, slots=True)
class MappedAddress:
    """The public address and port of the sender of the request."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StunRefused:
    """The server refused: an error code (300 to 699), or 0 for an unusable answer."""

    code: int


def build_request(transaction: bytes) -> bytes:
    """Return a binding request.

    Args:
        transaction: Twelve random bytes that identify the answer; the same ones in a repeated request.
    """
    return _HEADER.pack(_REQUEST, 0, _COOKIE, transaction)


def read_response(data: bytes, transaction: bytes) -> MappedAddress | StunRefused | None:
    """Return the result in a datagram, or None if it is not an answer to this request."""
    if len(data) < _HEADER.size:
        return None
    kind, length, cookie, answered = _HEADER.unpack_from(data)
    whole = length == len(data) - _HEADER.size and length % 4 == 0
    if not whole or cookie != _COOKIE or answered != transaction or kind not in (_SUCCESS, _FAILURE):
        return None
    attributes = dict(_attributes(data[_HEADER.size :]))
    return _read_failure(attributes) if kind == _FAILURE else _read_success(attributes)


def _attributes(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the attributes from the last to the first: of two of a kind the first one counts (section 15)."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at + _ATTRIBUTE.size <= len(body):
        kind, length = _ATTRIBUTE.unpack_from(body, at)
        start = at + _ATTRIBUTE.size
        found.append((kind, body[start : start + length]))
        at = start + length + -length % 4
    return reversed(found)


def _read_success(attributes: dict[int, bytes]) -> MappedAddress | StunRefused:
    unknown = {kind for kind in attributes if kind < _OPTIONAL} - _HARMLESS - {_MAPPED, _XOR_MAPPED}
    if unknown:
        return StunRefused(0)
    if _XOR_MAPPED in attributes:
        return _read_address(attributes[_XOR_MAPPED], _COOKIE)
    return _read_address(attributes.get(_MAPPED, b""), 0)


def _read_address(value: bytes, mask: int) -> MappedAddress | StunRefused:
    if len(value) != _ADDRESS.size:
        return StunRefused(0)
    family, port, host = _ADDRESS.unpack(value)
    if family != _IPV4:
        return StunRefused(0)
    return MappedAddress(str(IPv4Address(host ^ mask)), port ^ (mask >> 16))


def _read_failure(attributes: dict[int, bytes]) -> StunRefused:
    value = attributes.get(_ERROR_CODE, b"")
    if len(value) < _ERROR.size:
        return StunRefused(0)
    hundreds, rest = _ERROR.unpack_from(value)
    return StunRefused((hundreds & 7) * 100 + rest)
