"""Judges datagrams as they come from the server, before anything on their way is simulated (contract 4)."""

from collections.abc import Iterator

from fleet.workbench.sim.connection.datagram import HEADER
from fleet.workbench.sim.connection.keystream import Keystream
from fleet.workbench.sim.records.audit import Finding

_SMALLEST, _LARGEST = 24, 1200


class DownlinkAudit:
    """Watches the downlink of one hello; the rules are the same whatever the device makes of a datagram.

    Args:
        keystream: Of this hello's key, which the uplink uses too.
        aec: Whether timestamps matter.
    """

    def __init__(self, keystream: Keystream, *, aec: bool) -> None:
        self._keystream = keystream
        self._aec = aec
        self._sequence = 0
        self._timestamp = 0

    def check(self, datagram: bytes) -> Iterator[Finding]:
        """Yield what is wrong with the next datagram."""
        if not _SMALLEST <= len(datagram) <= _LARGEST:
            yield "datagram-size", f"{len(datagram)} bytes"
        if len(datagram) < HEADER:
            return
        header, length = datagram[:HEADER], len(datagram) - HEADER
        if header[0] != 1 or int.from_bytes(header[2:4], "big") != length:
            yield "datagram-form", f"type {header[0]}, {length} bytes of payload: {header.hex()}"
        sequence, timestamp = int.from_bytes(header[12:], "big"), int.from_bytes(header[8:12], "big")
        if sequence <= self._sequence:
            yield "sequence", f"{sequence} after {self._sequence}"
            return
        self._sequence = sequence
        if self._keystream.receive(header, length):
            yield "keystream", f"downlink packet {sequence} meets another packet"
        if self._aec and timestamp <= self._timestamp:
            yield "echo-reference", f"timestamp {timestamp} after {self._timestamp}"
        self._timestamp = max(timestamp, self._timestamp)
