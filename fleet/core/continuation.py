"""Going on with a message of a chat model that broke off after its beginning had been spoken.

Chat endpoints have no common way to continue a message: some refuse one of the assistant's at the end, most begin a new
one. So the model is told in words what was heard, in the system message, where every endpoint takes it; and what it
repeats nevertheless is left out, as long as it repeats it word for word. White space does not count.
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
    """Return the conversation with the model told what was heard of its answer, part by part."""
    return _instruct(asked, _REMINDER.format(said=" ".join(said)))


def urge(asked: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation with the model told to answer in words, since it wrote nothing."""
    return _instruct(asked, _URGENT)


def _instruct(asked: Sequence[Message], words: str) -> tuple[Message, ...]:
    if asked and asked[0].role == "system":
        return (Message("system", f"{asked[0].text}\n{words}"), *asked[1:])
    return (Message("system", words), *asked)


class Continuation:
    """Leaves out of a message what was said already, as the message comes.

    Args:
        said: What the message may repeat at its beginning, part by part; empty for a message of its own.
    """

    def __init__(self, said: Sequence[str]) -> None:
        self._said = _solid("".join(said))
        self._held = ""
        self._passed: list[str] = []

    @property
    def new(self) -> str:
        """All that was passed on."""
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
    """Return what follows so many characters that are no white space."""
    at = 0
    while solid:
        solid -= not text[at].isspace()
        at += 1
    return text[at:]
