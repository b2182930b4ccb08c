"""Continuing a message of a chat model that broke off after its beginning was spoken.

Chat endpoints have no common way to continue a message: some refuse an assistant message at the end, most begin a new
one. So the system message, which every endpoint accepts, quotes the spoken beginning. If the model repeats it word for
word, the repetition is removed. White space does not count.
"""

from collections.abc import Sequence

from fleet.core.ports import Message

_REMINDER = (
    "Your answer to the newest message broke off for a technical reason. The user has already heard this beginning of "
    "it: <heard>{said}</heard> Go on directly after these words. Repeat none of them, and do not mention that you "
    "broke off."
)

_URGENT = "Your answer must not be empty: say in a sentence or more what you found out, did, or could not do."


def remind(conversation: Sequence[Message], spoken: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation with a system message that quotes the spoken parts of the answer, for its continuation.

    Args:
        conversation: The prompt, with or without a system message at its beginning.
        spoken: The sentences of the answer that the user has heard.
    """
    return _instruct(conversation, _REMINDER.format(said=" ".join(spoken)))


def urge(conversation: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with a system message that demands text, for a new attempt after an empty answer."""
    return _instruct(conversation, _URGENT)


def _instruct(conversation: Sequence[Message], words: str) -> tuple[Message, ...]:
    if conversation and conversation[0].role == "system":
        return (Message("system", f"{conversation[0].text}\n{words}"), *conversation[1:])
    return (Message("system", words), *conversation)


class Continuation:
    """Removes a repetition of the spoken beginning from a message's text, as the text arrives.

    There is no flush: text that is still held back when the message ends is only a beginning of the repetition.

    Args:
        spoken: The sentences that the message may repeat at its beginning; empty for a new message.
    """

    def __init__(self, spoken: Sequence[str]) -> None:
        self._spoken = _without_spaces("".join(spoken))
        self._held = ""
        self._passed: list[str] = []

    @property
    def new(self) -> str:
        """The text of the message so far, without the repetition."""
        return "".join(self._passed)

    def take(self, piece: str) -> str:
        """Take the next piece of the message; return the text that is new, empty while it may be a repetition."""
        if self._spoken:
            self._held += piece
            heard = _without_spaces(self._held)
            if len(heard) < len(self._spoken) and self._spoken.startswith(heard):
                return ""
            piece = _after(self._held, len(self._spoken)) if heard.startswith(self._spoken) else self._held
            self._spoken = self._held = ""
        self._passed.append(piece)
        return piece


def _without_spaces(text: str) -> str:
    return "".join(text.split())


def _after(text: str, count: int) -> str:
    """Return the text after its first `count` characters that are not white space."""
    at = 0
    while count:
        count -= not text[at].isspace()
        at += 1
    return text[at:]
