"""Takes turns back from what a device's next turns know of them."""

from collections.abc import Awaitable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import TypeAdapter

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.turn_data import LONGEST_TEXT
from fleet.core.history import INTERRUPTED
from fleet.core.ports import Message

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """A turn with its texts, as they were recorded."""

    turn: str
    question: str
    answer: str


async def forget_turns(store: Store, mac: str, turns: Collection[SaidTurn]) -> None:
    """Delete turns from a device's history, its journal and their replies; a history that had one is not remembered.

    Raises:
        Unavailable: Redis did not answer.
    """
    keys, client = store.keys, store.client
    lines = await store.ask(cast("Awaitable[list[str]]", client.lrange(keys.history(mac), 0, -1)))
    newest = await store.ask(cast("Awaitable[str | None]", client.hget(keys.turn(mac), "turn")))
    gone = [line for part in _turns(lines) if any(_is(part, one) for one in turns) for line in part]
    pipe = client.pipeline(transaction=False)
    for one in turns:
        pipe.delete(keys.reply(mac, one.turn))
    if newest in {one.turn for one in turns}:
        pipe.delete(keys.turn(mac))
    if gone:
        # What is remembered of a conversation is counted from the end of the history.
        pipe.delete(keys.conversation(mac))
    for line in gone:
        pipe.lrem(keys.history(mac), -1, line)
    await store.ask(cast("Awaitable[list[int]]", pipe.execute()))


async def forget_history(store: Store, mac: str) -> None:
    """Delete all that a device's next turns would know of its former ones, but no facts; nothing of it is remembered.

    A turn that runs now is no former one.

    Raises:
        Unavailable: Redis did not answer.
    """
    keys, client = store.keys, store.client
    state = await store.ask(cast("Awaitable[str | None]", client.hget(keys.turn(mac), "state")))
    over = () if state == "running" else (keys.turn(mac),)
    names = (*over, keys.history(mac), keys.conversation(mac), keys.reports(mac))
    await store.ask(client.delete(*names))


def _turns(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each turn, which begins with what the user said."""
    part: list[str] = []
    for line in lines:
        if part and _MESSAGE.validate_json(line).role == "user":
            yield part
            part = []
        part.append(line)
    if part:
        yield part


def _is(part: Sequence[str], turn: SaidTurn) -> bool:
    """Whether these are the lines of a turn. One of both may know already that its answer was cut short."""
    messages = [_MESSAGE.validate_json(line) for line in part]
    said = (one.text.strip() for one in messages if one.role == "assistant")
    answers = (" ".join(text for text in said if text)[:LONGEST_TEXT], turn.answer)
    short, long = sorted((one.removesuffix(INTERRUPTED).rstrip() for one in answers), key=len)
    return messages[0].role == "user" and messages[0].text[:LONGEST_TEXT] == turn.question and long.startswith(short)
