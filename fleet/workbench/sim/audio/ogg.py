"""Opus packets out of an Ogg file, as firmware 2.5 takes it for a notification (docs/notify.md, RFC 3533, RFC 7845)."""

from collections.abc import Iterator

_HEADER, _LACING = 27, 255
_HEAD, _TAGS = b"OpusHead", b"OpusTags"
_CHANNELS = 9
_LARGEST_PACKET = 2048
"""Bytes of firmware's buffer for one packet."""


class OggError(Exception):
    """A file that firmware gives up on."""


class OggReader:
    """Reads a file that comes in pieces; it keeps no more than a page."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._begun = b""
        self._serial: bytes | None = None
        self._found = 0
        """Packets, with the two heads."""

    def feed(self, content: bytes) -> list[bytes]:
        """Return the Opus packets that a piece completes.

        Raises:
            OggError: Firmware stops here.
        """
        self._bytes += content
        return [packet for page in iter(self._page, None) for packet in self._packets(*page)]

    def finish(self) -> None:
        """Note the end of the file.

        Raises:
            OggError: It holds no whole stream.
        """
        if self._bytes or self._begun:
            if self._begun:
                raise OggError("the file ends in the midst of a packet")
            raise OggError("the file ends in the midst of a page")
        if self._found < 2:
            raise OggError("no Opus stream")
        if self._found == 2:
            raise OggError("the stream has no audio")

    def _page(self) -> tuple[bytes, bytes] | None:
        """Remove the next page; return its segment table and body, or None while it is incomplete."""
        head = bytes(self._bytes[:_HEADER])
        if not b"OggS\0".startswith(head[:5]):
            raise OggError("no Ogg page")
        if len(head) < _HEADER:
            return None
        table = bytes(self._bytes[_HEADER : _HEADER + head[-1]])
        start = _HEADER + head[-1]
        end = start + sum(table)
        if len(table) < head[-1] or end > len(self._bytes):
            return None
        if self._serial not in (None, head[14:18]):
            raise OggError("more than one stream")
        self._serial, body = head[14:18], bytes(self._bytes[start:end])
        del self._bytes[:end]
        return table, body

    def _packets(self, table: bytes, body: bytes) -> Iterator[bytes]:
        at = 0
        for size in table:
            self._begun += body[at : at + size]
            at += size
            if len(self._begun) > _LARGEST_PACKET and not self._begun.startswith(_TAGS):
                raise OggError(f"a packet of more than {_LARGEST_PACKET} bytes")
            if size < _LACING:
                packet, self._begun = self._begun, b""
                self._found += 1
                if self._found > 2:
                    yield packet
                else:
                    _check_head(self._found, packet)


def _check_head(number: int, packet: bytes) -> None:
    if not packet.startswith((_HEAD, _TAGS)[number - 1]):
        raise OggError("no Opus stream")
    if number == 1 and packet[_CHANNELS : _CHANNELS + 1] != b"\x01":
        raise OggError("the stream is not mono")
