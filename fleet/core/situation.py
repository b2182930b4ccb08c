"""What changes from turn to turn, told to the model before the newest words of the user.

Endpoints reuse their work on the part of a prompt that is equal to an earlier prompt, from its beginning on. So the
system message holds only what seldom changes. The history keeps the plain words of the user: only the last exchange is
new in the next prompt, and old times and reports take no room.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from fleet.core.ports import Message

_OPEN, _CLOSE = "<situation>\n", "\n</situation>\n"
_TAG = re.compile(r"<(?=\s*/?\s*situation)", re.IGNORECASE)
_HARMLESS = "‹"

SITUATION_RULE = (
    "The newest message of the user begins with a part in <situation> tags. The server wrote this part for you; the "
    "user neither said nor sees it. Everything after it was said by the user."
)
"""Instruction for the system message."""


def describe_situation(now: datetime, *, language: str = "", reports: str = "") -> str:
    """Return what the model is told about this moment, one fact a line.

    Args:
        now: The time where the user is.
        language: Code of the language in which the user was heard; empty when unknown.
        reports: What the device reported of its own accord (`fleet.core.reports`); empty for nothing.
    """
    spoken = f"The user speaks {language!r}." if language else ""
    return "\n".join(part for part in (f"It is {now:%A, %Y-%m-%d %H:%M}.", spoken, reports) if part)


def situate(history: Sequence[Message], words: str, situation: str) -> tuple[Message, ...]:
    """Return the conversation with the user's newest words, and the situation before them.

    Tags that a user or a device wrote are changed, so that they cannot be taken for the server's.
    """
    newest = Message("user", f"{_OPEN}{_disarm(situation)}{_CLOSE}{_disarm(words)}")
    return (*(replace(one, text=_disarm(one.text)) if one.role == "user" else one for one in history), newest)


def words_of(text: str) -> str:
    """Return the user's words of a message that `situate` may have written, for models that only read words."""
    return text.partition(_CLOSE)[2] if text.startswith(_OPEN) else text


def _disarm(text: str) -> str:
    return _TAG.sub(_HARMLESS, text)
