"""The dialects that fleet knows, and how a frame's dialect is recognised."""

from typing import Final

from fleet.wire import dialect_registrar, dialect_xiaozhi
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
    """Return a dialect by its name; a device of unknown dialect is taken for a xiaozhi."""
    return DIALECTS.get(name, dialect_xiaozhi.DIALECT)


def capabilities(name: str) -> Capabilities:
    """Return what devices of a dialect can do; nothing where the dialect is unknown."""
    dialect = DIALECTS.get(name)
    return dialect.capabilities if dialect else _NOTHING


def receive(frame: bytes) -> tuple[str, DeviceEvent]:
    """Return the name of a frame's dialect and what the frame says in it.

    A frame that no dialect claims is a xiaozhi's. A frame that shows no dialect (broken JSON, mostly) comes as a
    xiaozhi's `MalformedEvent`; the device's record knows better.
    """
    if len(frame) > LARGEST_FRAME:
        return XIAOZHI, MalformedEvent("too large")
    known = DIALECTS.values()
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        marked = next((dialect for dialect in known if dialect.mark and dialect.mark in frame), None)
        return (marked.name, marked.receive(frame)) if marked else (XIAOZHI, MalformedEvent("not JSON"))
    dialect = next((dialect for dialect in known if dialect.claims(document)), dialect_xiaozhi.DIALECT)
    return dialect.name, dialect.read(document)
