"""All dialects, and the recognition of a frame's dialect."""

from typing import Final

from fleet.wire import dialect_registrar, dialect_xiaozhi, typed_frames
from fleet.wire.dialect import Capabilities, Dialect
from fleet.wire.json_text import LARGEST_FRAME, parse
from fleet.wire.messages import DeviceEvent, MalformedEvent

XIAOZHI: Final = dialect_xiaozhi.DIALECT.name

DIALECTS: Final[dict[str, Dialect]] = {
    dialect.name: dialect
    for dialect in (
        dialect_xiaozhi.DIALECT,
        dialect_registrar.DIALECT,
    )
}

_NOTHING: Final = Capabilities()


def find(name: str) -> Dialect:
    """Return a dialect by its name; the xiaozhi dialect for an unknown name."""
    return DIALECTS.get(name, dialect_xiaozhi.DIALECT)


def capabilities(name: str) -> Capabilities:
    """Return the capabilities of a dialect's devices; none if the dialect is unknown."""
    dialect = DIALECTS.get(name)
    return dialect.capabilities if dialect else _NOTHING


def receive(frame: bytes) -> tuple[str, DeviceEvent]:
    """Return the name of a frame's dialect, and the frame's event.

    A frame that no dialect claims is read as xiaozhi. A frame of unknown dialect (mostly broken JSON) becomes a
    `MalformedEvent` of xiaozhi; the caller should prefer the dialect in the device's record.
    """
    if len(frame) > LARGEST_FRAME:
        return XIAOZHI, MalformedEvent("too large")
    if usual := typed_frames.read(frame):
        return XIAOZHI, usual
    known = DIALECTS.values()
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        marked = next((dialect for dialect in known if dialect.mark and dialect.mark in frame), None)
        return (marked.name, marked.receive(frame)) if marked else (XIAOZHI, MalformedEvent("not JSON"))
    dialect = next((dialect for dialect in known if dialect.claims(document)), dialect_xiaozhi.DIALECT)
    return dialect.name, dialect.read(document)
