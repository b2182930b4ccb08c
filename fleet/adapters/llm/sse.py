"""Bodies of endpoints: the `data:` lines of server-sent events, or one JSON document."""

MAX_LINE = 1_000_000
"""Bytes that a line may have; a tool call of that length is a fault."""

_BEFORE = b" \t\r\n\xef\xbb\xbf"
"""White space and the mark of UTF-8, before a body's first character."""
_WHOLE = (b"{", b"[", b"<")
"""First bytes of JSON and of a proxy's HTML page; no line of an event stream begins so."""


class SseReader:
    """Cuts a byte stream into payloads.

    Lines end at line feeds only: other line separators (U+2028, U+0085) may occur inside of JSON.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that these bytes complete; comments and other fields are left out."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [payload for line in lines if (payload := _payload(line))]

    def end(self) -> list[bytes]:
        """Return the payload of a last line without an end."""
        payload, self._rest = _payload(self._rest), b""
        return [payload] if payload else []

    @property
    def is_too_long(self) -> bool:
        """Whether the unfinished line has grown beyond `MAX_LINE`."""
        return len(self._rest) > MAX_LINE


class WholeReader:
    """Reads a body that is not a stream as one payload."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Keep the bytes; the payload is complete at the end."""
        self._body += data
        return []

    def end(self) -> list[bytes]:
        """Return the body."""
        body, self._body = bytes(self._body), bytearray()
        return [body] if body else []

    @property
    def is_too_long(self) -> bool:
        """Whether the body has grown beyond `MAX_LINE`."""
        return len(self._body) > MAX_LINE


class BodyReader:
    """Reads a body of either kind, detected by its first bytes: the media type of some endpoints is wrong."""

    def __init__(self) -> None:
        self._reader: SseReader | WholeReader | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that these bytes complete."""
        if self._reader is None:
            data = data.lstrip(_BEFORE)
            if not data:
                return []
            self._reader = WholeReader() if data[:1] in _WHOLE else SseReader()
        return self._reader.feed(data)

    def end(self) -> list[bytes]:
        """Return the payload that ends with the body."""
        return self._reader.end() if self._reader else []

    @property
    def is_too_long(self) -> bool:
        """Whether the buffered data has grown beyond `MAX_LINE`."""
        return self._reader is not None and self._reader.is_too_long


def _payload(line: bytes) -> bytes:
    return line[5:].strip() if line.startswith(b"data:") else b""
