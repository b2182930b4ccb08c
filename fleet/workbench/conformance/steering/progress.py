"""The progress of a turn, read from the messages of a request: another process may resume a turn."""

from collections.abc import Sequence

from pydantic import JsonValue

from fleet.workbench.conformance.steering.records import Body
from fleet.workbench.conformance.steering.script import letters


def since_user(messages: Sequence[Body]) -> list[Body]:
    """Return what came after the newest message of the user."""
    found: list[Body] = []
    for message in reversed(messages):
        if message.get("role") == "user":
            break
        found.insert(0, message)
    return found


def results(messages: Sequence[Body]) -> list[str]:
    """Return the outcomes of calls that the model was given."""
    return [text_of(message) for message in messages if message.get("role") == "tool"]


def unsaid(sentences: Sequence[str], messages: Sequence[Body]) -> list[str]:
    """Return which sentences the model has not written yet."""
    spoken = letters(" ".join(text_of(message) for message in messages if message.get("role") == "assistant"))
    return [sentence for sentence in sentences if letters(sentence) not in spoken]


def text_of(message: Body) -> str:
    """Return a message's text, nothing where it has none."""
    content: JsonValue = message.get("content")
    return content if isinstance(content, str) else ""
