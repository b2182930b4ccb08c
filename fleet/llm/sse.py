"""Server-sent events, as far as chat models use them: bytes in, the text of `data:` lines out."""

MAX_LINE = 1_000_000
"""Bytes that a line may have; a tool call of that length is a fault."""


class SseReader:
    """Cuts a byte stream into payloads.

    Lines end at line feeds only: other separators that text libraries know (U+2028, U+0085) may stand inside of JSON.
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
    """Takes a body that is no stream for one payload."""

    def __init__(self) -> None:
        self._body = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Keep the bytes; the payload is complete at the end."""
        self._body += data
        return []

    def end(self) -> list[bytes]:
        """Return the body."""
        body, self._body = self._body, b""
        return [body] if body else []

    @property
    def is_too_long(self) -> bool:
        """Whether the body has grown beyond `MAX_LINE`."""
        return len(self._body) > MAX_LINE


def _payload(line: bytes) -> bytes:
    return line[5:].strip() if line.startswith(b"data:") else b""
