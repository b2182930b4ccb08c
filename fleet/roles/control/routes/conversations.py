"""`/v1/conversations` and `/v1/devices/{mac}/data`: what was said, and its end."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from fleet.adapters.redis.sessions.redaction import SaidTurn, forget_history, forget_turns
from fleet.adapters.sql.conversation_rows import MOST_TURNS, ConversationQuery, ConversationRows
from fleet.adapters.sql.device_rows import DeviceRows
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.adapters.sql.redactions import Redactions
from fleet.core.permissions import CONVERSATIONS_READ, CONVERSATIONS_WRITE
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.device_queries import read_mac
from fleet.roles.control.problems import not_found
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.conversations import (
    ConversationFilter,
    ConversationSearch,
    ConversationTurn,
    ConversationTurns,
    Erased,
    RecordedConversation,
    RedactedLines,
)
from fleet.wire.control.shapes import ListPage, time_of

_HIDDEN = ("tenant", "conversation", "mac", "search")
ConversationId = Annotated[int, Path(ge=1, le=2**62)]
Number = Annotated[int, Query(ge=0, le=2**62)]
_PAGE = 200
_LINES = RouteNotes(gives=("application/x-ndjson",))


class ConversationRoutes:
    """Conversations of the caller's tenant. Reading them is audited."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        routes.add("GET /conversations", self.list_conversations, CONVERSATIONS_READ)
        routes.add("GET /conversations:export", self.export, CONVERSATIONS_READ, model=None, notes=_LINES)
        routes.add("GET /conversations/{conversation}", self.read, CONVERSATIONS_READ, model=ConversationTurns)
        routes.add("DELETE /conversations/{conversation}", self.delete, CONVERSATIONS_WRITE, status=204, model=None)
        redact = "POST /conversations/{conversation}/turns/{number}:redact"
        routes.add(redact, self.redact, CONVERSATIONS_WRITE, model=ConversationTurn)
        routes.add("DELETE /devices/{mac}/data", self.erase, CONVERSATIONS_WRITE, model=Erased)

    async def list_conversations(
        self, who: Who, query: Annotated[ConversationSearch, Query()]
    ) -> ListPage[RecordedConversation]:
        """Return conversations, the newest first.

        A page may be short, or even empty, and still have a next one. With `words` a conversation may come twice.
        """
        place = self._services.cursors.read(who, "conversations", query.cursor)
        below = int(str(place[0])) if place else None
        wanted = _query(query, query.words.strip())
        rows, following = await self._rows(who).page(wanted, below, query.limit)
        written = None if following is None else self._services.cursors.write(who, "conversations", [following])
        return ListPage(items=[_conversation(row) for row in rows], next=written)

    async def read(self, request: Request, who: Who, conversation: ConversationId, after: Number = 0) -> Response:
        """Return a conversation with its turns, 500 at most."""
        row = await self._rows(who).read(conversation)
        if row is None:
            raise not_found("conversation")
        turns = await self._rows(who).turns(conversation, after)
        answer = ConversationTurns(
            conversation=_conversation(row),
            turns=[_turn(one) for one in turns],
            next=turns[-1].id if len(turns) == MOST_TURNS else None,
        )
        async with self._services.changes.begin(request) as change:
            await change.audit("conversation.read", f"conversation/{conversation}")
            return change.answer(answer)

    async def export(self, request: Request, who: Who, query: Annotated[ConversationFilter, Query()]) -> Response:
        """Return all turns of conversations as lines of JSON, each with its conversation and device."""
        wanted = _query(query)
        async with self._services.changes.begin(request) as change:
            await change.audit("conversation.export", "conversations", after=query.model_dump(mode="json"))
        return StreamingResponse(self._lines(who, wanted), media_type="application/x-ndjson")

    async def delete(self, request: Request, who: Who, conversation: ConversationId) -> Response:
        """Delete a conversation, also in what the model is told; its events stay, without what was said."""
        async with self._services.changes.begin(request) as change:
            rows = ConversationRows(change.sql, who.tenant)
            found = await rows.read(conversation)
            if found is None:
                raise not_found("conversation")
            await Redactions(change.sql, who.tenant).forget_events(conversation)
            after = 0
            while turns := await rows.turns(conversation, after):
                after = turns[-1].id
                await forget_turns(self._services.store, mac_text(found.mac), [_said(one) for one in turns])
            await rows.delete(conversation)
            await change.audit("conversation.delete", f"conversation/{conversation}")
            return change.answer(None, status=204)

    async def redact(
        self, request: Request, who: Who, conversation: ConversationId, number: ConversationId, body: RedactedLines
    ) -> Response:
        """Delete lines of a turn: here, in its events, and in what the model is told of the turn.

        What the device remembers of its users stays: see `/devices/{mac}/memory`.
        """
        async with self._services.changes.begin(request) as change:
            rows = Redactions(change.sql, who.tenant)
            found = await rows.read(conversation, number)
            if found is None:
                raise not_found("turn")
            await rows.redact(found, body.lines)
            name, lines = f"conversation/{conversation}", sorted(set(body.lines))
            await change.audit("conversation.redact", name, after={"turn": number, "lines": lines})
            # Last: if Redis is away, nothing was changed. What is gone from Redis alone is no loss but of context.
            await forget_turns(self._services.store, mac_text(found.mac), [_said(found)])
            shape = _turn(await rows.read(conversation, number))
            # The line that was not redacted may be later: no kept answer has it.
            return change.answer(shape, stored=shape.model_copy(update={"question": "", "answer": ""}))

    async def erase(self, request: Request, who: Who, mac: str) -> Response:
        """Delete all conversations, events and usage of a device, and its history for the model.

        The audit log keeps that it was done. What the device remembers of its users stays: see `/devices/{mac}/memory`.
        """
        name = read_mac(mac)
        known = await DeviceRows(self._services.database, who.tenant).read(name) is not None
        async with self._services.changes.begin(request) as change:
            counts = await ConversationRows(change.sql, who.tenant).erase(name)
            if not known and not any(counts.values()):
                raise not_found("device")
            await change.audit("device.data.delete", f"device/{name}", after=counts)
            if known:
                await forget_history(self._services.store, name)
            return change.answer(Erased(**counts))

    def _rows(self, who: Principal) -> ConversationRows:
        return ConversationRows(self._services.database, who.tenant)

    async def _lines(self, who: Principal, wanted: ConversationQuery) -> AsyncIterator[bytes]:
        rows, below = self._rows(who), None
        while True:
            page, below = await rows.page(wanted, below, _PAGE)
            for row in page:
                after = 0
                while turns := await rows.turns(row.id, after):
                    after = turns[-1].id
                    lines = [_line(row, turn) for turn in turns]
                    yield "".join(lines).encode()
            if below is None:
                return


def _query(wanted: ConversationFilter, words: str = "") -> ConversationQuery:
    limits = {"since": wanted.since, "before": wanted.before}
    times = {name: round(at.timestamp() * 1000) for name, at in limits.items() if at is not None}
    mac = read_mac(wanted.device) if wanted.device else ""
    return ConversationQuery(mac=mac, agent=wanted.agent, words=words, **times)


def _conversation(row: Any) -> RecordedConversation:
    started, ended = time_of(row.started), time_of(row.ended)
    assert started and ended  # noqa: S101 - for the type checker
    return RecordedConversation(
        id=row.id, device=mac_text(row.mac), agent=row.agent, started=started, ended=ended, turns=row.turns
    )


def _turn(row: Any) -> ConversationTurn:
    values = {name: value for name, value in row._mapping.items() if name not in _HIDDEN}  # noqa: SLF001 - public
    return ConversationTurn(**{**values, "at": time_of(row.at), "redacted": row.redacted.split()})


def _said(row: Any) -> SaidTurn:
    return SaidTurn(row.turn, row.question, row.answer)


def _line(conversation: Any, turn: Any) -> str:
    shape = _turn(turn).model_dump(mode="json")
    return json.dumps({"conversation": conversation.id, "device": mac_text(conversation.mac), **shape}) + "\n"
