"""What a turn says as text, to devices that show it."""

from contextlib import suppress
from typing import Final, Literal

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.text.emotion import emotion_of
from fleet.core.text.speakable import speakable
from fleet.ground.errors import Overloaded, Unavailable
from fleet.roles.worker.ownership.shard import Shard
from fleet.wire import dialects
from fleet.wire.messages import AiMessageCommand, AlertCommand

LONGEST_ALERT = 400
"""Characters that a small screen is given."""

_MOST_CLEANED = 10 * LONGEST_ALERT
"""Characters of an answer that are cleaned for a screen; Markdown and code may be most of them."""

LONGEST_THOUGHT = 200
"""Characters of thoughts that are sent at the latest."""

_FENCE = "```"
_LINE_ENDS = ("\n", "。", "！", "？", ". ", ".", "!", "?")


class ScreenMessages:
    """The written side of one turn.

    The device's dialect says how (`Capabilities.text`). `pieces`: the answer in pieces, each up to the end of a
    sentence, and then the whole of it; the pieces put together are the whole. `alert`: a device without a session
    cannot speak (it must open the audio itself), so it is shown the answer at the end; a device in a session speaks,
    and is sent nothing here.

    Args:
        shard: Reaches the device.
        session: The device's, or none.
    """

    def __init__(self, shard: Shard, session: SessionRecord) -> None:
        self._shard = shard
        self._session = session
        self._how: Final[Literal["pieces", "alert", ""]] = _way(session)
        self._raw = ""
        """What was written and is not cut into pieces yet."""
        self._next = ""
        """What is to be sent."""
        self._whole: list[str] = []
        self.repeated = False
        """Whether what is cut now was sent before, as far as anybody knows."""
        self._thought = ""

    @property
    def whole(self) -> str:
        """The answer so far, as far as it was cut into pieces."""
        return "".join(self._whole)

    def write(self, text: str) -> None:
        """Take the next of the model's text as it came."""
        self._raw += text

    def cut(self, piece: str) -> None:
        """Take the next piece into which that text was cut."""
        end = _find(self._raw, piece)
        text, self._raw = self._raw[:end], self._raw[end:]
        self._whole.append(text)
        if not self.repeated and self._how == "pieces":
            self._next += text

    def part(self) -> None:
        """The text before this was a whole message of the model: another one begins on a line of its own."""
        self._raw = "\n" if self._whole else ""

    def send(self) -> None:
        """Send what was cut into pieces, as far as the broker takes it now: the whole follows.

        Raises:
            Fenced: The lease may have ended.
        """
        self._send_thought()
        if self._how != "pieces" or not self._next.strip():
            return
        with suppress(Unavailable, Overloaded):
            self._publish(AiMessageCommand("chunk", self._next))
            self._next = ""

    def think(self, text: str) -> None:
        """Take the next of the model's thoughts, and send them in lines: they come in single words.

        Raises:
            Fenced: The lease may have ended.
        """
        self._thought += text
        if len(self._thought) >= LONGEST_THOUGHT or text.endswith(_LINE_ENDS):
            self._send_thought()

    def end(self) -> None:
        """Send the whole answer; nothing if there is none.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: The broker is away; it can be done again.
            Overloaded: The same.
        """
        self.send()
        if self._how == "pieces" and self.whole.strip():
            self._publish(AiMessageCommand("final", self.whole))
        elif self._how == "alert" and (text := speakable(self.whole[:_MOST_CLEANED])):
            shown = text if len(text) <= LONGEST_ALERT else f"{text[: LONGEST_ALERT - 1]}…"
            face = emotion_of(self.whole) or "neutral"
            self._publish(AlertCommand("", shown, face))

    def leave(self) -> None:
        """End an answer that was broken off: what was sent of it is all of it.

        Raises:
            Fenced: The lease may have ended.
        """
        sent = self.whole.removesuffix(self._next)
        if self._how == "pieces" and sent.strip():
            with suppress(Unavailable, Overloaded):
                self._publish(AiMessageCommand("final", sent))

    def _send_thought(self) -> None:
        thought, self._thought = self._thought, ""
        if self._how == "pieces" and thought.strip():
            with suppress(Unavailable, Overloaded):
                self._publish(AiMessageCommand("thought", thought))

    def _publish(self, command: AiMessageCommand | AlertCommand) -> None:
        self._shard.publish(self._session.device, command, self._session.dialect)


def _way(session: SessionRecord) -> Literal["pieces", "alert", ""]:
    way = dialects.capabilities(session.dialect).text
    return "" if way == "alert" and session.edge else way


def _find(raw: str, piece: str) -> int:
    """Return where a piece ends in the text that it was cut from: at its beginning, after white space."""
    start = len(raw) - len(raw.lstrip())
    # The rest of a long block of code was given the mark of its beginning.
    return start + len(piece if raw.startswith(piece, start) else piece.removeprefix(_FENCE))
