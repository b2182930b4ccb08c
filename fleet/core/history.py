"""The history of a turn: the text that was spoken, and every tool call together with its outcome."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from fleet.core.ports import Message
from fleet.core.text.pieces import cut_text
from fleet.core.text.sentences import SentenceSplitter
from fleet.core.text.speakable import speakable

INTERRUPTED = "[the user interrupted]"
"""Ends an answer that was not played to its end."""
UNANSWERED = "error: unknown whether it was done, the turn ended before the answer came"


def settle(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return messages that an endpoint accepts as history.

    Every call is followed by exactly one outcome; a missing one is replaced by `UNANSWERED`. Outcomes without a call,
    and empty answers, are left out. Consecutive answers become one.
    """
    whole: list[Message] = []
    at = 0
    while at < len(messages):
        message, at = messages[at], at + 1
        if message.role == "tool" or (message.role == "assistant" and not message.calls and not message.text.strip()):
            continue
        if whole and _go_together(whole[-1], message):
            message = replace(message, text=f"{whole.pop().text} {message.text}".strip())
        whole.append(message)
        if message.calls:
            outcomes: dict[str, Message] = {}
            while at < len(messages) and messages[at].role == "tool":
                outcomes.setdefault(messages[at].call_id, messages[at])
                at += 1
            whole += [outcomes.get(call.id, Message("tool", UNANSWERED, call_id=call.id)) for call in message.calls]
    return tuple(whole)


def cut(messages: Sequence[Message], spoken: int) -> tuple[Message, ...]:
    """Return a turn's messages as the history keeps them after an interruption.

    Args:
        messages: Of the turn, as the model wrote them. Calls and their outcomes are kept.
        spoken: How many sentences the user heard, the last perhaps not to its end.
    """
    kept: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            text, said = _beginning(message.text, spoken)
            spoken -= said
            message = replace(message, text=text)
        kept.append(message)
    return settle((*kept, Message("assistant", INTERRUPTED)))


def count_sentences(text: str) -> int:
    """Return as how many sentences a text is spoken."""
    return _beginning(text, len(text))[1]


def since_user(history: Sequence[Message]) -> tuple[Message, ...]:
    """Return the history from its first user message on, settled; its beginning may be missing."""
    first = next((at for at, message in enumerate(history) if message.role == "user"), len(history))
    return settle(history[first:])


def certain(text: str) -> str:
    """Return the part of an unfinished text that the splitter has already cut into pieces.

    No continuation of the text changes these pieces.
    """
    end = 0
    for piece in SentenceSplitter().feed(text):
        end = _end(text, end, piece)
    return text[:end]


def _go_together(earlier: Message, later: Message) -> bool:
    return earlier.role == later.role == "assistant" and not earlier.calls


def _beginning(text: str, sentences: int) -> tuple[str, int]:
    """Return the text up to the end of its n-th spoken sentence, and how many it holds.

    The text is cut as for speech; the pieces do not depend on how the text was chunked.
    """
    splitter = SentenceSplitter()
    end = said = 0
    fed = (piece for part in cut_text(text) for piece in splitter.feed(part))
    for piece in chain(fed, _late(splitter)):
        if said >= sentences:
            break
        said += bool(speakable(piece))
        end = _end(text, end, piece)
    return text[:end], said


def _late(splitter: SentenceSplitter) -> Iterator[str]:
    yield from splitter.flush()


def _end(text: str, start: int, piece: str) -> int:
    """Return the end of the next piece after a position."""
    while start < len(text) and text[start].isspace():
        start += 1
    # The splitter begins each further piece of a long block of code with the block's mark.
    return start + len(piece if text.startswith(piece, start) else piece.removeprefix("```"))
