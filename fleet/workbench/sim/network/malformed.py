"""What a broken or hostile device sends: malformed messages, and texts that break JSON (contract 1.1, 5.1)."""

import random

BAD_SSID = 'caf\udce9 "home" \\'
"""A byte that is no UTF-8 (as Python carries it in text), a quote and a backslash."""
BAD_WAKE_TEXT = 'say "hi"\nto the\\ lamp'
BAD_ERROR = 'cannot open "lamp":\nno such \\device'

_JUNK = (
    b'{"type":"listen","state":"sta',
    b'["type","listen"]',
    b'{"state":"start"}',
    b'{"type":17,"state":"start"}',
    b'{"type":"listen","state":{"mode":[]}}',
    b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":"x","result":null}}',
    b'{"type":"no such kind"}',
    b"\xff\xfe\x00 no text at all",
    b"",
)


def junk(chance: random.Random) -> bytes:
    """Return a payload that a server has to survive."""
    return chance.choice(_JUNK)
