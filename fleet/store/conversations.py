"""A device's history, and the journal of its running turn."""

import secrets
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import TypeAdapter

from fleet.core.ports import Message
from fleet.core.reports import SECONDS as REPORT_SECONDS
from fleet.core.reports import Report
from fleet.store.connect import Store
from fleet.store.keys import SESSION_SECONDS, TURN_SECONDS
from fleet.store.owner import Owner
from fleet.store.sessions import Session
from fleet.store.tools import decode_tools
from fleet.wire.mcp import ToolSpec

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])

LONGEST_HISTORY = 100
"""Messages kept of a device; how many the model is given is a setting."""

TurnState = Literal["running", "written", "cut"]


@dataclass(frozen=True, slots=True)
class Journal:
    """What a turn has already done: the messages from the user's on, and how many sentences were handed to the edge.

    A turn is `running`, `written` to its end, or `cut` off.
    """

    turn: str
    state: TurnState
    messages: tuple[Message, ...]
    sentences: int


@dataclass(frozen=True, slots=True)
class Context:
    """All that a turn needs to know of its device: its tools, the newest history, oldest first, and its reports."""

    tools: tuple[ToolSpec, ...]
    history: tuple[Message, ...]
    reports: tuple[Report, ...]


class Conversations:
    """Reads and writes histories and journals.

    Args:
        store: Where they are kept.
        seconds: How long a history is kept after its last turn.
    """

    def __init__(self, store: Store, seconds: int) -> None:
        self._store = store
        self._seconds = seconds

    async def begin(
        self, owner: Owner, mac: str, session: str, turn: str, asked: Message
    ) -> Session | Literal["gone", "again"]:
        """Write down that a turn begins, which keeps its session alive.

        Returns:
            The session; `gone` when it is over, `again` when this turn had begun before.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        verdict, *record = await self._store.call(
            "fleet_turn_begin",
            [keys.own(keys.shard(mac)), keys.session(mac), keys.turn(mac)],
            [
                *(owner.worker, owner.fence, session, SESSION_SECONDS, TURN_SECONDS),
                *(turn, _dump((asked,)), secrets.token_hex(8)),
            ],
        )
        if verdict == "GO":
            return Session.of(mac, dict(zip(record[::2], record[1::2], strict=True)))
        return "again" if verdict == "AGAIN" else "gone"

    async def context(self, mac: str, most: int) -> Context:
        """Return what a turn needs to know, with at most so many messages of history."""
        keys = self._store.keys
        tools, count, *lines = await self._store.call(
            "fleet_turn_context",
            [keys.tools(mac), keys.history(mac), keys.reports(mac)],
            [most, REPORT_SECONDS * 1000],
        )
        history, reports = lines[: int(count)], lines[int(count) :]
        return Context(
            decode_tools(tools),
            tuple(_MESSAGE.validate_json(line) for line in history),
            tuple(_report(line) for line in reports),
        )

    async def record(self, owner: Owner, mac: str, journal: Journal) -> None:
        """Write down how far a turn has got, before its next step begins."""
        keys = self._store.keys
        await self._store.call(
            "fleet_set",
            [keys.own(keys.shard(mac)), keys.turn(mac)],
            [
                owner.worker,
                owner.fence,
                TURN_SECONDS,
                *("turn", journal.turn),
                *("state", journal.state),
                *("messages", _dump(journal.messages)),
                *("sentences", journal.sentences),
            ],
        )

    async def remember(self, owner: Owner, mac: str, journal: Journal, lines: Sequence[Message]) -> bool:
        """Put a turn into the history, in place of what it put there before.

        Args:
            owner: The lease.
            mac: The device.
            journal: Of the turn as it ended.
            lines: What is remembered of it.

        Returns:
            False when a newer turn has begun: then nothing is changed.
        """
        keys = self._store.keys
        (done,) = await self._store.call(
            "fleet_remember",
            [keys.own(keys.shard(mac)), keys.history(mac), keys.turn(mac)],
            [
                *(owner.worker, owner.fence, self._seconds, LONGEST_HISTORY),
                *(journal.turn, TURN_SECONDS, journal.state, _dump(journal.messages)),
                *(_MESSAGE.dump_json(message).decode() for message in lines),
            ],
        )
        return done == "1"

    async def journal(self, mac: str) -> Journal | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.turn(mac)))
        )
        if not record:
            return None
        messages = _MESSAGES.validate_json(record["messages"])
        return Journal(record["turn"], cast("TurnState", record["state"]), messages, int(record["sentences"]))


def _dump(messages: tuple[Message, ...]) -> str:
    return _MESSAGES.dump_json(messages).decode()


def _report(line: str) -> Report:
    age, _, text = line.partition(" ")
    return Report(int(age) // 1000, text)
