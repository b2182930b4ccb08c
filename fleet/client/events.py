"""Calls about events, conversations and usage, and a follower of events."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from fleet.client.call import Call, Nothing
from fleet.client.client import AsyncFleetClient
from fleet.wire.control.conversations import (
    ConversationTurn,
    ConversationTurns,
    Erased,
    Line,
    RecordedConversation,
    RedactedLines,
)
from fleet.wire.control.events import EventPage
from fleet.wire.control.shapes import ListPage
from fleet.wire.control.usage import UsageList

_STREAM: Mapping[str, str] = {"Accept": "text/event-stream"}
_LONGEST_FRAME = 1_000_000


def events(after: int = 0, *, kinds: str = "", query: str = "", device: str = "", limit: int = 500) -> Call[EventPage]:
    """Read stored events, the oldest first."""
    return Call("GET", "/events", EventPage, {**_wanted(kinds, query, device), "after": after, "limit": limit})


def conversations(**wanted: Any) -> Call[ListPage[RecordedConversation]]:
    """List or search conversations (`fleet.wire.control.conversations.ConversationSearch`)."""
    return Call("GET", "/conversations", ListPage[RecordedConversation], _given(wanted))


def conversation(number: int, after: int = 0) -> Call[ConversationTurns]:
    """Read a conversation with its turns."""
    return Call("GET", f"/conversations/{number}", ConversationTurns, {"after": after})


def delete_conversation(number: int) -> Call[Nothing]:
    """Delete a conversation."""
    return Call("DELETE", f"/conversations/{number}", Nothing)


def redact(number: int, turn: int, *lines: Line) -> Call[ConversationTurn]:
    """Delete lines of a turn."""
    body = RedactedLines(lines=list(lines))
    return Call("POST", f"/conversations/{number}/turns/{turn}:redact", ConversationTurn, body=body)


def erase(mac: str) -> Call[Erased]:
    """Delete conversations, events and usage of a device, named by its canonical MAC."""
    return Call("DELETE", f"/devices/{mac}/data", Erased)


def usage(**wanted: Any) -> Call[UsageList]:
    """Sum the usage of some days."""
    return Call("GET", "/usage", UsageList, {name: value for name, value in wanted.items() if value is not None})


async def follow(
    client: AsyncFleetClient, *, kinds: str = "", query: str = "", device: str = "", after: int | None = None
) -> AsyncIterator[tuple[int | None, str, str]]:
    """Yield events as they happen: the id, the kind (`gap` for a gap) and the event as JSON, until the stream ends.

    Whoever connects again with the last id misses none.

    Raises:
        ClientError: Control refused the request, or the connection broke off.
    """
    asked = {**_wanted(kinds, query, device), **({} if after is None else {"after": after})}
    async for frame in frames(client.download("/events", asked, _STREAM)):
        yield frame


async def watch(client: AsyncFleetClient, mac: str) -> AsyncIterator[tuple[str, str]]:
    """Yield what is said on a device: the kind, and the line as JSON, until the stream ends.

    Raises:
        ClientError: Control refused the request, or the connection broke off.
    """
    async for _, kind, data in frames(client.download(f"/devices/{mac}/transcript", {}, _STREAM)):
        yield kind, data


async def frames(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[int | None, str, str]]:
    """Yield id, kind and data of each frame of text/event-stream that has data."""
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n\n")
        if len(rest) > _LONGEST_FRAME:
            return
        for frame in whole:
            fields = dict(line.partition(": ")[::2] for line in frame.decode().splitlines())
            if "data" in fields:
                number = fields.get("id", "")
                yield (int(number) if number.isdigit() else None), fields.get("event", ""), fields["data"]


def _wanted(kinds: str, query: str, device: str) -> dict[str, Any]:
    return _given({"kinds": kinds, "filter": query, "device": device})


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "")}
