"""All dialects, and how a device's is recognised by what it sends."""

from typing import Final

from fleet.wire import dialect_registrar, dialect_xiaozhi
from fleet.wire.dialect import Dialect
from fleet.wire.json_text import LARGEST_FRAME, parse
from fleet.wire.messages import DeviceEvent, MalformedEvent

XIAOZHI: Final = dialect_xiaozhi.DIALECT.name
REGISTRAR: Final = dialect_registrar.DIALECT.name

DIALECTS: Final[dict[str, Dialect]] = {
    dialect.name: dialect for dialect in (dialect_xiaozhi.DIALECT, dialect_registrar.DIALECT)
}

_MARK = dialect_registrar.REGISTER.encode()


def find(name: str) -> Dialect:
    """Return a dialect by its name; where none is known of a device, it is taken for a xiaozhi."""
    return DIALECTS.get(name, dialect_xiaozhi.DIALECT)


def receive(frame: bytes) -> tuple[str, DeviceEvent]:
    """Return the name of a frame's dialect and what it says in it.

    A frame with a member `jsonrpc` of its own is a registrar's, every other one a xiaozhi's; what can only be told from
    its device's record (broken JSON, mostly) comes as a xiaozhi's `MalformedEvent`.
    """
    if len(frame) > LARGEST_FRAME:
        return XIAOZHI, MalformedEvent("too large")
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        if _MARK in frame:
            return REGISTRAR, dialect_registrar.DIALECT.receive(frame)
        return XIAOZHI, MalformedEvent("not JSON")
    if isinstance(document, dict) and "jsonrpc" in document:
        return REGISTRAR, dialect_registrar.DIALECT.read(document)
    return XIAOZHI, dialect_xiaozhi.DIALECT.read(document)
