"""A device's history, and the journal of its current turn."""

import secrets
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, cast

from pydantic import TypeAdapter

from fleet.adapters.redis.client.pipeline import Words
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import SESSION_SECONDS, TURN_SECONDS
from fleet.adapters.redis.sessions.asks import read_ask
from fleet.adapters.redis.sessions.history_terms import HistoryTerms
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.adapters.redis.sessions.turn_context import Context, context_keys, context_words, read_context
from fleet.adapters.redis.sessions.turn_data import NO_FACTS, TurnFacts, turn_data
from fleet.adapters.redis.shards.inbox import NO_POST
from fleet.adapters.redis.shards.owner import Owner
from fleet.core.consent import Ask
from fleet.core.ports import Message, TokenUsage

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
_MESSAGES: TypeAdapter[tuple[Message, ...]] = TypeAdapter(tuple[Message, ...])

LONGEST_HISTORY = 100
"""Messages that are kept of a device, and less than a block more (`functions.lua`); a setting says how many the model
gets."""

FRESH_SECONDS = 30.0
"""Age of the oldest utterance that is answered; the user of an older one does not wait any more."""
MOST_RESUMES = 5
"""How often a turn is resumed before it ends with an apology: the turn itself may crash its workers."""

TurnState = Literal["running", "written", "cut"]


@dataclass(frozen=True, slots=True)
class StoredJournal:
    """The progress of a turn, from which another worker can resume it.

    A turn is `running`, `written` to its end, or `cut` off. `messages` are complete, from the user's on; `partial` is
    the text of the next message when its last sentence was sent to the edge; `apology` follows them all. The edge has
    at least `sentences` of their sentences. `usage` are the turn's tokens.
    """

    turn: str
    state: TurnState
    messages: tuple[Message, ...]
    sentences: int
    partial: str = ""
    apology: str = ""
    usage: TokenUsage = field(default_factory=TokenUsage)
    terms: HistoryTerms | None = field(default=None, compare=False)
    """None for those of the settings."""

    @property
    def written(self) -> tuple[Message, ...]:
        """All messages; the last may have broken off."""
        return (*self.messages, Message("assistant", self.partial)) if self.partial else self.messages

    @property
    def lead(self) -> tuple[Message, ...]:
        """What was said before the answer to the user, with a request of its own."""
        newest = max((at for at, one in enumerate(self.messages) if one.role == "user"), default=0)
        return self.messages[:newest]

    @classmethod
    def of(cls, record: Mapping[str, str]) -> "StoredJournal":
        return cls(
            record["turn"],
            cast("TurnState", record["state"]),
            _MESSAGES.validate_json(record["messages"]),
            int(record["sentences"]),
            record.get("partial", ""),
            record.get("apology", ""),
            _usage(record.get("tokens", "")),
            HistoryTerms.read(record.get("terms", "")),
        )


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn to answer: its session, and its journal if it had begun before.

    `late`: the user does not wait for the answer any more, or the turn was resumed too often. `watched`: somebody
    follows its live transcript. `asked`: the call that waited for the user's yes when this turn began; it waits no
    longer. `context`: the data of the device as they were then.
    """

    session: SessionRecord
    journal: StoredJournal | None = None
    late: bool = False
    asked: Ask | None = None
    watched: bool = False
    context: Context | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a turn: session (empty: the current one or none), id, user's message, id of its stream entry."""

    session: str
    turn: str
    asked: Message
    entry: str


Refusal = Literal["gone", "over", "busy"]
_REFUSALS: Final[dict[str, Refusal]] = {"GONE": "gone", "OVER": "over", "BUSY": "busy"}


class Ending(NamedTuple):
    """What is done together with the writing of a turn's end."""

    post: Words = NO_POST
    """What its edge gets; see `Inboxes.post_all`."""
    entry: str = ""
    """The turn's entry in the inbox, if it is discarded."""


NO_ENDING: Final = Ending()


class Conversations:
    """Reads and writes histories and journals.

    Args:
        store: Where they are kept.
        seconds: How long a history is kept after its last turn, unless its agent says another time.
        remembers: Whether conversations are noted for `fleet.adapters.redis.devices.memories`, unless their agent says.
        recorded: Whether the events of turns hold what was said.
    """

    def __init__(self, store: Store, seconds: int, *, remembers: bool = False, recorded: bool = False) -> None:
        self._store = store
        self._usual = HistoryTerms(seconds, remembers=remembers)
        self._recorded = recorded

    async def begin(
        self, owner: Owner, mac: str, opening: Opening, resume_seconds: float, history: int
    ) -> Begun | Refusal:
        """Record that a turn begins or is resumed; this prolongs its session.

        Args:
            owner: The lease.
            mac: The device.
            opening: The turn. The turn with the newest stream entry wins.
            resume_seconds: Longest time in seconds since a turn's last step in which it may be resumed.
            history: Messages of history in its context, unless the agent says another number.

        Returns:
            The turn; or `gone` if its session is over, `over` if a newer turn has begun, `busy` if the previous turn
            still runs and must be ended first.

        Raises:
            Fenced: The shard is another worker's now.
        """
        keys = self._store.keys
        verdict, *answer = await self._store.call(
            "fleet_turn_begin",
            [
                *(keys.own(keys.shard(mac)), keys.session(mac), keys.turn(mac), keys.device(mac)),
                *(keys.transcript(mac), *context_keys(self._store, mac)),
            ],
            [
                *(owner.worker, owner.fence, opening.session, SESSION_SECONDS, TURN_SECONDS),
                *(opening.turn, _dump((opening.asked,)), secrets.token_hex(8), opening.entry),
                *(round(FRESH_SECONDS * 1000), round(resume_seconds * 1000), MOST_RESUMES, *context_words(history)),
            ],
        )
        return _REFUSALS[verdict] if verdict in _REFUSALS else _begun(mac, verdict == "AGAIN", *answer)

    async def context(self, mac: str, most: int) -> Context:
        """Return the data that a turn needs; `most` says how much history, unless the agent does."""
        words = context_words(most)
        return read_context(await self._store.call("fleet_turn_context", context_keys(self._store, mac), words))

    async def record(
        self, owner: Owner, mac: str, journal: StoredJournal, post: Words = NO_POST, *, whole: bool = True
    ) -> None:
        """Record the progress of a running turn before its next step begins.

        Args:
            owner: The lease.
            mac: The device.
            journal: Of the turn.
            post: What the edge gets then; see `Inboxes.post_all`.
            whole: Whether there are new complete messages; else only the partial one is written.

        Raises:
            Fenced: The shard is another worker's now, or a newer turn has begun.
        """
        keys = self._store.keys
        await self._store.call(
            "fleet_turn_record",
            [keys.own(keys.shard(mac)), keys.turn(mac)],
            [
                *(owner.worker, owner.fence, TURN_SECONDS, journal.turn, *post),
                *("sentences", journal.sentences),
                *("partial", journal.partial),
                *("tokens", _tokens(journal.usage)),
                *(("messages", _dump(journal.messages)) if whole else ()),
            ],
        )

    async def remember(
        self,
        owner: Owner,
        mac: str,
        journal: StoredJournal,
        lines: Sequence[Message],
        facts: TurnFacts = NO_FACTS,
        ending: Ending = NO_ENDING,
    ) -> bool:
        """Write a turn into the history, in place of its earlier lines, and the event of its end.

        Args:
            owner: The lease.
            mac: The device.
            journal: Of the turn as it ended.
            lines: Its messages for the history.
            facts: What its worker knows besides.
            ending: What is done with it.

        Returns:
            False if a newer turn has begun: then nothing is changed or sent.
        """
        keys, shard, terms = self._store.keys, self._store.keys.shard(mac), journal.terms or self._usual
        data = turn_data(journal.turn, journal.written, lines, journal.usage, facts, recorded=self._recorded)
        noted: tuple[str, ...] = ()
        if terms.remembers and any(one.role == "user" and one.text.strip() for one in journal.messages):
            noted = (keys.conversations(shard), keys.conversation(mac))
        (done,) = await self._store.call(
            "fleet_remember",
            [*(keys.own(shard), keys.history(mac), keys.turn(mac), keys.events(shard), keys.inbox(shard)), *noted],
            [
                *(owner.worker, owner.fence, terms.seconds, LONGEST_HISTORY),
                *(journal.turn, TURN_SECONDS, journal.state, _dump(journal.written)),
                *(journal.sentences, journal.apology, _tokens(journal.usage), mac, data, terms.text),
                *(ending.entry, *ending.post),
                *(_MESSAGE.dump_json(message).decode() for message in lines),
            ],
        )
        return done == "1"

    async def journal(self, mac: str) -> StoredJournal | None:
        record = await self._store.ask(
            cast("Awaitable[dict[str, str]]", self._store.client.hgetall(self._store.keys.turn(mac)))
        )
        return StoredJournal.of(record) if record else None


def _begun(mac: str, again: bool, late: str, watched: str, of_session: str, of_turn: str, *parts: str) -> Begun:
    first = int(of_session)
    second = first + int(of_turn)
    turn = _pairs(parts[first:second])
    return Begun(
        SessionRecord.of(mac, _pairs(parts[:first])),
        StoredJournal.of(turn) if again and turn else None,
        late=late == "1",
        asked=read_ask(turn.get("asked", "")),
        watched=watched == "1",
        context=read_context(parts[second:]),
    )


def _pairs(parts: Sequence[str]) -> dict[str, str]:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _dump(messages: tuple[Message, ...]) -> str:
    return _MESSAGES.dump_json(messages).decode()


def _tokens(usage: TokenUsage) -> str:
    return f"{usage.input} {usage.cached} {usage.output}"


def _usage(tokens: str) -> TokenUsage:
    return TokenUsage(*map(int, tokens.split())) if tokens else TokenUsage()
