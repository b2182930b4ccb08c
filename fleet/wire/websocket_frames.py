"""The boundaries of the frames and messages of a WebSocket, found without buffering them."""

_FINAL, _OPCODE, _CONTROL = 0x80, 0x0F, 0x08
_MASKED, _LENGTH = 0x80, 0x7F
_WIDER = {126: 2, 127: 8}
"""Bytes of the length behind these lengths."""


class FrameTracker:
    """Follows the bytes that one end of a WebSocket sends, from its first frame on."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._left = 0
        """Bytes of the frame that are still to come."""
        self._open = False
        self._ends = False
        self.messages = 0
        """Number of complete messages."""

    @property
    def between(self) -> bool:
        """Whether there is no unfinished frame or fragmented message."""
        return not self._head and not self._left and not self._open

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = min(_head_length(self._head) - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                if len(self._head) == _head_length(self._head):
                    self._begin()
            at += step
            if self._ends and not self._left and not self._head:
                self._open = self._ends = False
                self.messages += 1

    def _begin(self) -> None:
        first, second = self._head[0], self._head[1]
        wider = _WIDER.get(second & _LENGTH, 0)
        self._left = int.from_bytes(self._head[2 : 2 + wider]) if wider else second & _LENGTH
        self._head.clear()
        if not first & _OPCODE & _CONTROL:
            self._open, self._ends = True, bool(first & _FINAL)


def _head_length(head: bytearray) -> int:
    if len(head) < 2:
        return 2
    return 2 + _WIDER.get(head[1] & _LENGTH, 0) + (4 if head[1] & _MASKED else 0)
