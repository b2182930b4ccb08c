"""Writes what was said into conversations, from the events of turns, in the caller's transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.history_schema import CONVERSATION, CONVERSATION_TURN
from fleet.adapters.sql.upserts import insert_if_absent

_OUTCOMES: Final = {"turn.answered": "answered", "turn.failed": "failed", "turn.interrupted": "interrupted"}
_NUMBERS: Final = ("input_tokens", "cached_tokens", "output_tokens", "speech_ms")


@dataclass(frozen=True, slots=True)
class _Turn:
    tenant: int
    mac: int
    at: int
    outcome: str
    agent: str
    data: Mapping[str, Any]

    @property
    def session(self) -> str:
        return (_text(self.data, "session") or _text(self.data, "turn"))[:64]


class TurnWrites:
    """The turns of one batch of events whose text was recorded."""

    def __init__(self, connection: AsyncConnection, *, is_sqlite: bool) -> None:
        self._connection, self._is_sqlite = connection, is_sqlite
        self._turns: list[_Turn] = []
        self._shortened: list[dict[str, Any]] = []
        self._spoken: list[dict[str, Any]] = []

    def add(self, tenant: int, mac: int, at: int, kind: str, agent: str, data: Mapping[str, Any]) -> None:
        """Take an event; most have nothing for a conversation."""
        of = {"of_mac": mac, "of_turn": _text(data, "turn")[:64]}
        if kind in _OUTCOMES:
            if _text(data, "user"):
                self._turns.append(_Turn(tenant, mac, at, _OUTCOMES[kind], agent, data))
        elif kind == "turn.shortened" and _text(data, "user"):
            answer, search = _text(data, "answer"), _search(data)
            self._shortened.append({**of, "new_answer": answer, "new_search": search})
        elif kind == "turn.spoken":
            spoken, first = _number(data, "spoken_ms"), _number(data, "first_audio_ms")
            self._spoken.append({**of, "new_spoken": spoken, "first_audio": first})

    async def write(self) -> None:
        """Write them; a batch that tells of a turn twice changes nothing the second time."""
        if self._turns:
            await self._write_turns()
        of = (CONVERSATION_TURN.c.mac == bindparam("of_mac"), CONVERSATION_TURN.c.turn == bindparam("of_turn"))
        if self._shortened:
            cut = {"answer": bindparam("new_answer"), "search": bindparam("new_search"), "outcome": "interrupted"}
            await self._connection.execute(update(CONVERSATION_TURN).where(*of).values(cut), self._shortened)
        if self._spoken:
            await self._note_spoken()

    async def _note_spoken(self) -> None:
        """Add the edge's times to turns that are recorded."""
        key = tuple_(CONVERSATION_TURN.c.mac, CONVERSATION_TURN.c.turn)
        wanted = {(one["of_mac"], one["of_turn"]): one for one in self._spoken}
        found = select(
            CONVERSATION_TURN.c.id, CONVERSATION_TURN.c.stages, CONVERSATION_TURN.c.mac, CONVERSATION_TURN.c.turn
        )
        changes = []
        for row in await self._connection.execute(found.where(key.in_(list(wanted)))):
            spoken = wanted[row.mac, row.turn]
            stages = {**row.stages, "first_audio": spoken["first_audio"]} if spoken["first_audio"] else row.stages
            changes.append({"of": row.id, "new_spoken": spoken["new_spoken"], "new_stages": stages})
        if changes:
            values = {
                "spoken_ms": bindparam("new_spoken"),
                "stages": bindparam("new_stages", type_=CONVERSATION_TURN.c.stages.type),
            }
            where = CONVERSATION_TURN.c.id == bindparam("of")
            await self._connection.execute(update(CONVERSATION_TURN).where(where).values(values), changes)

    async def _write_turns(self) -> None:
        known = {(one.mac, one.session): one for one in reversed(self._turns)}
        begin = insert_if_absent(CONVERSATION, is_sqlite=self._is_sqlite)
        # The number of a conversation is its place in lists: a batch may hold what happened while control was away.
        new = sorted(known.values(), key=lambda one: one.at)
        await self._connection.execute(begin, [_conversation(one) for one in new])
        key = tuple_(CONVERSATION.c.mac, CONVERSATION.c.session)
        found = select(CONVERSATION.c.mac, CONVERSATION.c.session, CONVERSATION.c.id).where(key.in_(list(known)))
        numbers = {(mac, session): number for mac, session, number in await self._connection.execute(found)}
        rows = [_row(one, numbers[one.mac, one.session]) for one in self._turns]
        await self._connection.execute(insert_if_absent(CONVERSATION_TURN, is_sqlite=self._is_sqlite), rows)
        last = {numbers[one.mac, one.session]: one.at for one in self._turns}
        count = select(func.count()).where(CONVERSATION_TURN.c.conversation == CONVERSATION.c.id).scalar_subquery()
        ended = update(CONVERSATION).where(CONVERSATION.c.id == bindparam("of"))
        await self._connection.execute(
            ended.values(ended=bindparam("at"), turns=count), [{"of": number, "at": at} for number, at in last.items()]
        )


def _conversation(turn: _Turn) -> dict[str, Any]:
    return {
        "tenant": turn.tenant,
        "mac": turn.mac,
        "session": turn.session,
        "agent": turn.agent,
        "started": turn.at,
        "ended": turn.at,
        "turns": 0,
    }


def _row(turn: _Turn, conversation: int) -> dict[str, Any]:
    data = turn.data
    stages, tools = data.get("stages"), data.get("tools")
    return {
        "tenant": turn.tenant,
        "conversation": conversation,
        "mac": turn.mac,
        "turn": _text(data, "turn")[:64],
        "at": turn.at,
        "question": _text(data, "user"),
        "answer": _text(data, "answer"),
        "language": _text(data, "language")[:32],
        "outcome": turn.outcome,
        "typed": data.get("typed") is True,
        "stages": stages if isinstance(stages, dict) else {},
        "tools": tools if isinstance(tools, list) else [],
        **{name: _number(data, name) for name in _NUMBERS},
        "spoken_ms": 0,
        "search": _search(data),
    }


def _search(data: Mapping[str, Any]) -> str:
    return f"{_text(data, 'user')}\n{_text(data, 'answer')}".casefold()


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    # PostgreSQL stores no NUL.
    return value.replace("\0", "") if isinstance(value, str) else ""


def _number(data: Mapping[str, Any], name: str) -> int:
    value = data.get(name)
    return value if isinstance(value, int) and 0 <= value < 2**31 else 0
