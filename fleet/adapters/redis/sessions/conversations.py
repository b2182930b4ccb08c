"""A device's history, and the journal of its running turn."""

import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from pydantic import TypeAdapter

from fleet.adapters.redis.access.admissions import admission_key
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.tools import decode_tools
from fleet.adapters.redis.keys import SESSION_SECONDS, TURN_SECONDS
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.ports import Message
from fleet.core.reports import SECONDS as REPORT_SECONDS
from fleet.core.reports import DeviceReport
from fleet.core.server_tools import Persona
from fleet.wire.mcp import ToolSpec

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])

LONGEST_HISTORY = 100
"""Messages kept of a device; how many the model is given is a setting."""

FRESH_SECONDS = 30.0
"""Oldest utterance that is answered: who said an older one does not expect anything to come of it any more."""
MOST_ATTEMPTS = 5
"""How often a turn is taken up again before it is apologised for: it may be what ended its workers."""

TurnState = Literal["running", "written", "cut"]


@dataclass(frozen=True, slots=True)
class StoredJournal:
    """What a turn has already done, so that it can be taken up where it was left.

    A turn is `running`, `written` to its end, or `cut` off. `messages` are whole, from the user's on; `partial` is what
    was written of the one after them when a sentence of it was handed over last; `apology` follows them all. The edge
    certainly has as many of their sentences as `sentences` says, and perhaps more.
    """

    turn: str
    state: TurnState
    messages: tuple[Message, ...]
    sentences: int
    partial: str = ""
    apology: str = ""

    @property
    def written(self) -> tuple[Message, ...]:
        """All messages; the last may have broken off."""
        return (*self.messages, Message("assistant", self.partial)) if self.partial else self.messages

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "StoredJournal":
        return cls(
            record["turn"],
            cast("TurnState", record["state"]),
            _MESSAGES.validate_json(record["messages"]),
            int(record["sentences"]),
            record.get("partial", ""),
            record.get("apology", ""),
        )


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that is to be answered: its session, and its journal when it had begun before.

    `late` says that nobody waits for the answer any more, or that it was tried too often.
    """

    session: SessionRecord
    journal: StoredJournal | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """What a turn begins with: the live session, the turn's id, the user's message, and the letter that brought it.

    Without a session it is begun in whatever session the device has, or in none.
    """

    session: str
    turn: str
    asked: Message
    letter: str


Refusal = Literal["gone", "over", "busy"]
_REFUSALS: Final[dict[str, Refusal]] = {"GONE": "gone", "OVER": "over", "BUSY": "busy"}


@dataclass(frozen=True, slots=True)
class Context:
    """All that a turn needs to know of its device: tools, newest history (oldest first), reports, persona, zone."""

    tools: tuple[ToolSpec, ...]
    history: tuple[Message, ...]
    reports: tuple[DeviceReport, ...]
    persona: Persona = field(default_factory=Persona)
    timezone: str = ""
    """Of the device: an IANA name or minutes east of UTC; the server's own without it."""


class Conversations:
    """Reads and writes histories and journals.

    Args:
        store: Where they are kept.
        seconds: How long a history is kept after its last turn.
    """

    def __init__(self, store: Store, seconds: int) -> None:
        self._store = store
        self._seconds = seconds

    async def begin(self, owner: Owner, mac: str, opening: Opening, patience: float) -> Begun | Refusal:
        """Write down that a turn begins or is taken up again, which keeps its session alive.

        Args:
            owner: The lease.
            mac: The device.
            opening: The turn. Letters are ordered as they were written, and the device's newest one wins.
            patience: Longest time in seconds since a turn's last step in which it may be taken up again.

        Returns:
            The turn; or `gone` when its session is over, `over` when a newer one has begun, `busy` when the one before
            it still runs and must be ended first.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        verdict, *answer = await self._store.call(
            "fleet_turn_begin",
            [keys.own(keys.shard(mac)), keys.session(mac), keys.turn(mac), keys.device(mac)],
            [
                *(owner.worker, owner.fence, opening.session, SESSION_SECONDS, TURN_SECONDS),
                *(opening.turn, _dump((opening.asked,)), secrets.token_hex(8), opening.letter),
                *(round(FRESH_SECONDS * 1000), round(patience * 1000), MOST_ATTEMPTS),
            ],
        )
        return _REFUSALS[verdict] if verdict in _REFUSALS else _begun(mac, verdict == "AGAIN", *answer)

    async def context(self, mac: str, most: int) -> Context:
        """Return what a turn needs to know, with at most so many messages of history."""
        keys = self._store.keys
        tools, count, language, character, timezone, *lines = await self._store.call(
            "fleet_turn_context",
            [keys.tools(mac), keys.history(mac), keys.reports(mac), keys.persona(mac), admission_key(self._store, mac)],
            [most, REPORT_SECONDS * 1000],
        )
        history, reports = lines[: int(count)], lines[int(count) :]
        return Context(
            decode_tools(tools),
            tuple(_MESSAGE.validate_json(line) for line in history),
            tuple(_report(line) for line in reports),
            Persona(language, character),
            timezone,
        )

    async def record(self, owner: Owner, mac: str, journal: StoredJournal, *, whole: bool = True) -> None:
        """Write down how far a running turn has got, before its next step begins.

        Args:
            owner: The lease.
            mac: The device.
            journal: Of the turn.
            whole: Whether there are new messages; else only what was written after them is.

        Raises:
            Fenced: The shard is another worker's now, or a newer turn has begun.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_turn_record",
            [keys.own(keys.shard(mac)), keys.turn(mac)],
            [
                *(owner.worker, owner.fence, TURN_SECONDS, journal.turn),
                *("sentences", journal.sentences),
                *("partial", journal.partial),
                *(("messages", _dump(journal.messages)) if whole else ()),
            ],
        )

    async def remember(self, owner: Owner, mac: str, journal: StoredJournal, lines: Sequence[Message]) -> bool:
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
                *(journal.turn, TURN_SECONDS, journal.state, _dump(journal.written)),
                *(journal.sentences, journal.apology),
                *(_MESSAGE.dump_json(message).decode() for message in lines),
            ],
        )
        return done == "1"

    async def journal(self, mac: str) -> StoredJournal | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.turn(mac)))
        )
        return StoredJournal.of(record) if record else None


def _begun(mac: str, again: bool, late: str, length: str, *parts: str) -> Begun:
    session, turn = parts[: int(length)], parts[int(length) :]
    return Begun(
        SessionRecord.of(mac, _pairs(session)),
        StoredJournal.of(_pairs(turn)) if again and turn else None,
        late=late == "1",
    )


def _pairs(parts: Sequence[str]) -> dict[str, str]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _dump(messages: tuple[Message, ...]) -> str:
    return _MESSAGES.dump_json(messages).decode()


def _report(line: str) -> DeviceReport:
    age, _, text = line.partition(" ")
    return DeviceReport(int(age) // 1000, text)
