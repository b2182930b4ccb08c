"""Opus packets out of an Ogg file, as firmware 2.5 takes it for a notification (docs/notify.md, RFC 3533, RFC 7845)."""

from collections.abc import Iterator

_HEADER, _LACING = 27, 255
_HEAD, _TAGS = b"OpusHead", b"OpusTags"
_CHANNELS = 9
_LARGEST_PACKET = 2048
"""Bytes of firmware's buffer for one packet."""


class OggError(Exception):
    """A file that firmware gives up on."""


def read_opus(content: bytes) -> list[bytes]:
    """Return the Opus packets of a file that holds one mono stream.

    Raises:
        OggError: It is no such file, or it ends in the midst of a packet.
    """
    packets = list(_packets(content))
    if len(packets) < 2 or not packets[0].startswith(_HEAD) or not packets[1].startswith(_TAGS):
        raise OggError("no Opus stream")
    if packets[0][_CHANNELS : _CHANNELS + 1] != b"\x01":
        raise OggError("the stream is not mono")
    if len(packets) == 2:
        raise OggError("the stream has no audio")
    return packets[2:]


def _packets(content: bytes) -> Iterator[bytes]:
    begun, stream = b"", None
    for serial, table, body in _pages(content):
        if stream not in (None, serial):
            raise OggError("more than one stream")
        stream, at = serial, 0
        for size in table:
            begun += body[at : at + size]
            at += size
            if len(begun) > _LARGEST_PACKET and not begun.startswith(_TAGS):
                raise OggError(f"a packet of more than {_LARGEST_PACKET} bytes")
            if size < _LACING:
                yield begun
                begun = b""
    if begun:
        raise OggError("the file ends in the midst of a packet")


def _pages(content: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield serial number, segment table and body of each page."""
    at = 0
    while at < len(content):
        head = content[at : at + _HEADER]
        if len(head) < _HEADER or not head.startswith(b"OggS\0"):
            raise OggError("no Ogg page")
        table = content[at + _HEADER : at + _HEADER + head[-1]]
        start = at + _HEADER + len(table)
        at = start + sum(table)
        if len(table) < head[-1] or at > len(content):
            raise OggError("the file ends in the midst of a page")
        yield head[14:18], table, content[start:at]
