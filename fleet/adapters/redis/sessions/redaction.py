"""Takes a turn back from what a device's next turns know of it."""

from collections.abc import Awaitable, Iterator, Sequence
from typing import cast

from pydantic import TypeAdapter

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.turn_data import LONGEST_TEXT
from fleet.core.ports import Message

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)


async def forget_turn(store: Store, mac: str, turn: str, question: str, answer: str) -> None:
    """Delete a turn from a device's history, its journal and its reply; a history that had it is not remembered.

    Raises:
        Unavailable: Redis did not answer.
    """
    keys, client = store.keys, store.client
    lines = await store.ask(cast("Awaitable[list[str]]", client.lrange(keys.history(mac), 0, -1)))
    newest = await store.ask(cast("Awaitable[str | None]", client.hget(keys.turn(mac), "turn")))
    gone = [line for part in _turns(lines) if _is(part, question, answer) for line in part]
    pipe = client.pipeline(transaction=False)
    pipe.delete(keys.reply(mac, turn))
    if newest == turn:
        pipe.delete(keys.turn(mac))
    if gone:
        # What is remembered of a conversation is counted from the end of the history.
        pipe.delete(keys.conversation(mac))
    for line in gone:
        pipe.lrem(keys.history(mac), -1, line)
    await store.ask(cast("Awaitable[list[int]]", pipe.execute()))


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


def _is(part: Sequence[str], question: str, answer: str) -> bool:
    messages = [_MESSAGE.validate_json(line) for line in part]
    said = (one.text.strip() for one in messages if one.role == "assistant")
    return (
        messages[0].role == "user"
        and messages[0].text[:LONGEST_TEXT] == question
        and " ".join(text for text in said if text)[:LONGEST_TEXT] == answer
    )
