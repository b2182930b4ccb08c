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


def remind(asked: Sequence[Message], said: Sequence[str]) -> tuple[Message, ...]:
    """Return the conversation with the spoken parts of the answer quoted in the system message."""
    return _instruct(asked, _REMINDER.format(said=" ".join(said)))


def urge(asked: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with a demand for text in the system message, after an empty answer."""
    return _instruct(asked, _URGENT)


def _instruct(asked: Sequence[Message], words: str) -> tuple[Message, ...]:
    if asked and asked[0].role == "system":
        return (Message("system", f"{asked[0].text}\n{words}"), *asked[1:])
    return (Message("system", words), *asked)


class Continuation:
    """Removes a repetition of the spoken beginning from a message's text, as the text arrives.

    Args:
        said: The parts that the message may repeat at its beginning; empty for a new message.
    """

    def __init__(self, said: Sequence[str]) -> None:
        self._said = _solid("".join(said))
        self._held = ""
        self._passed: list[str] = []

    @property
    def new(self) -> str:
        """All text that was passed on."""
        return "".join(self._passed)

    def take(self, piece: str) -> str:
        """Take the next piece; return what is new of the message. It is held back while it may be a repetition."""
        if self._said:
            self._held += piece
            heard = _solid(self._held)
            if len(heard) < len(self._said) and self._said.startswith(heard):
                return ""
            piece = _after(self._held, len(self._said)) if heard.startswith(self._said) else self._held
            self._said = self._held = ""
        self._passed.append(piece)
        return piece


def _solid(text: str) -> str:
    return "".join(text.split())


def _after(text: str, solid: int) -> str:
    """Return the text after the first `solid` characters that are not white space."""
    at = 0
    while solid:
        solid -= not text[at].isspace()
        at += 1
    return text[at:]
