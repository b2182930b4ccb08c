"""Whether the user agrees to a call: the server's question, and a fixed rule for the answer.

The model takes no part in it: it neither words the question nor reads the answer. Only a spoken utterance that follows
the whole question in the same session can be a yes. The words are data (`consent.toml`).
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import JsonValue

from fleet.core.own_words import Tokens, split
from fleet.core.ports import ToolCall

SECONDS: Final = 20.0
"""From the end of the question to the begin of the answer."""
MOST_WORDS: Final = 24
"""Words of an answer, of Chinese its characters, that is read; a longer one is another topic."""

Answer = Literal["yes", "no", "other"]

_LONGEST_NAME, _MOST_ARGUMENTS, _LONGEST_ARGUMENT = 60, 3, 24
_WORDS: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _phrases(lists: Iterable[Iterable[str]]) -> frozenset[Tokens]:
    return frozenset(split(phrase) for phrases in lists for phrase in phrases)


_YES, _NO = _phrases(_WORDS["yes"].values()), _phrases(_WORDS["no"].values())
_FILLERS: Final = _phrases(_WORDS["fillers"].values())


@dataclass(frozen=True, slots=True)
class Ask:
    """A call that waits for the user's yes."""

    turn: str
    """The turn at whose end the user is asked."""
    session: str
    tool: str
    """The tool's name as it was announced."""
    call: ToolCall
    what: str
    """What the question says of the call."""

    @property
    def confirmed(self) -> ToolCall:
        """The call as the next turn makes it: under an id that no other call of a conversation has."""
        mark = hashlib.sha256(f"{self.turn}:{self.call.id}".encode()).hexdigest()[:16]
        return replace(self.call, id=f"call_{mark}")


def note_unconfirmed(ask: Ask) -> str:
    """Return what the model is told of a call to which the user gave no yes."""
    return f"The user gave no clear yes to the call of {ask.call.name}: it was not made."


def describe_call(tool: str, arguments: Mapping[str, JsonValue], language: str) -> str:
    """Return what a question says of a call: its action, or else its name, and its short arguments."""
    known: Mapping[str, str] = _WORDS["actions"].get(language, _WORDS["actions"]["en"])
    name = " ".join(split(tool.removeprefix("self.").replace("_", " ")))[:_LONGEST_NAME]
    pairs = ((key, _say(value)) for key, value in arguments.items() if len(key) <= _LONGEST_ARGUMENT)
    short = [f"{' '.join(split(key.replace('_', ' ')))} {text}" for key, text in pairs if text]
    return ", ".join((known.get(tool, name), *short[:_MOST_ARGUMENTS]))


def write_question(what: str, language: str) -> str:
    """Return the server's question; English where the language is not known."""
    texts: Mapping[str, str] = _WORDS["question"]
    return texts.get(language, texts["en"]).format(what=what)


def judge(text: str, what: str = "") -> Answer:
    """Return what an answer is.

    Args:
        text: What the user said.
        what: What the question said of the call; its words may be repeated in the answer.
    """
    words = split(text)
    own: set[Tokens] = {(word,) for word in split(what)}
    if len(words) <= MOST_WORDS and _agrees(words, own - _NO):
        return "yes"
    return "no" if any(words[at : at + len(one)] == one for one in _NO for at in range(len(words))) else "other"


def confirms(ask: Ask, session: str, text: str, heard: str, pause: float) -> bool:
    """Whether an utterance confirms a call.

    Args:
        ask: The call, of the turn before the utterance.
        session: Of the utterance; empty if it belongs to none.
        text: What was said.
        heard: The turn whose answer the user had heard to its end before he spoke; empty for none, and for texts that
            were not spoken.
        pause: Seconds from the end of that answer to the begin of the utterance.
    """
    follows = heard == ask.turn and session == ask.session and bool(heard and session)
    return follows and 0 <= pause <= SECONDS and judge(text, ask.what) == "yes"


def _agrees(words: Tokens, own: set[Tokens]) -> bool:
    """Whether the words are one yes at least, fillers and own words, one after the other."""
    neutral = _FILLERS | own
    reached: dict[int, bool] = {0: False}
    for at in range(len(words)):
        if at not in reached:
            continue
        for phrases, is_yes in ((_YES, True), (neutral, False)):
            for one in phrases:
                if words[at : at + len(one)] == one:
                    end = at + len(one)
                    reached[end] = reached.get(end, False) or reached[at] or is_yes
    return reached.get(len(words), False)


def _say(value: JsonValue) -> str:
    """Return a short argument for speech; empty for what cannot be said, such as an address."""
    text = json.dumps(value) if isinstance(value, bool | int | float) else value
    short = isinstance(text, str) and len(text) <= _LONGEST_ARGUMENT and re.fullmatch(r"[\w .-]+", text)
    return str(text) if short else ""
