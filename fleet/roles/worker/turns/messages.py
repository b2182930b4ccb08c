"""Send a turn's answer as text to devices that show it."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Literal

from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.text.emotion import emotion_of
from fleet.core.text.screen import LONGEST_ALERT, cut_for_screen
from fleet.core.text.speakable import speakable
from fleet.ground.errors import Overloaded, Unavailable
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.turns.live import LiveTranscript
from fleet.wire import dialects
from fleet.wire.edge_messages import SpeakSentenceCommand
from fleet.wire.messages import AiMessageCommand, AlertCommand

_MOST_CLEANED = 10 * LONGEST_ALERT
"""Most characters of an answer that are cleaned for a screen; much of them may be Markdown and code."""

LONGEST_THOUGHT = 200
"""Characters of reasoning after which they are sent at the latest."""

_FENCE = "```"
_LINE_ENDS = ("\n", "。", "！", "？", ". ", ".", "!", "?")


class ScreenMessages:
    """The text output of one turn.

    It depends on the device's dialect (`Capabilities.text`). `pieces`: the answer is sent in pieces, each up to the end
    of a sentence, then as a whole; the pieces put together are the whole. `alert`: a device without a session cannot
    speak (it must open the audio itself), so it gets the answer as an alert at the end; a device in a session speaks,
    and gets no text.

    Args:
        shard: Publishes to the device.
        session: Of the device; may be empty.
    """

    def __init__(self, shard: Shard, session: SessionRecord) -> None:
        self._shard = shard
        self._session = session
        self._mode: Final[Literal["pieces", "alert", ""]] = _text_mode(session)
        self._raw = ""
        """Text that is not cut into pieces yet."""
        self._next = ""
        """Text to be sent."""
        self._whole: list[str] = []
        self.repeated = False
        """Whether another worker may have sent the pieces that are cut now."""
        self._thought = ""
        self.live: LiveTranscript | None = None
        """Set if somebody watches."""

    @property
    def shows(self) -> bool:
        """Whether the device or somebody else gets the answer as text."""
        return bool(self._mode) or self.live is not None

    @property
    def whole(self) -> str:
        """The part of the answer that was cut into pieces."""
        return "".join(self._whole)

    def write(self, text: str) -> None:
        """Take the next piece of the model's text."""
        self._raw += text

    def cut(self, piece: str) -> None:
        """Move the next piece from the text to the output."""
        end = _find(self._raw, piece)
        text, self._raw = self._raw[:end], self._raw[end:]
        self._whole.append(text)
        if not self.repeated and self._mode == "pieces":
            self._next += text

    def end_message(self) -> None:
        """End a message of the model: the next one begins on a new line."""
        self._raw = "\n" if self._whole else ""

    def send(self) -> None:
        """Send the pieces, if the broker takes them now; otherwise the whole answer has them later.

        Raises:
            Fenced: The lease may have ended.
        """
        self._send_thought()
        if self._mode != "pieces" or not self._next.strip():
            return
        with suppress(Unavailable, Overloaded):
            self._publish(AiMessageCommand("chunk", self._next))
            self._next = ""

    async def show(self, commands: Sequence[object]) -> None:
        """Show the sentences among some commands to whoever watches."""
        if self.live is not None:
            await self.live.show([one for one in commands if isinstance(one, SpeakSentenceCommand)])

    def think(self, text: str) -> None:
        """Take the next piece of the model's reasoning; collect single words and send lines.

        Raises:
            Fenced: The lease may have ended.
        """
        self._thought += text
        if len(self._thought) >= LONGEST_THOUGHT or text.endswith(_LINE_ENDS):
            self._send_thought()

    def end(self) -> None:
        """Send the whole answer, if there is one.

        Raises:
            Fenced: The lease may have ended.
            Unavailable: The broker is away; a retry is safe.
            Overloaded: The broker does not keep up; a retry is safe.
        """
        self.send()
        if self._mode == "pieces" and self.whole.strip():
            self._publish(AiMessageCommand("final", self.whole))
        elif self._mode == "alert" and (text := speakable(self.whole[:_MOST_CLEANED])):
            shown = cut_for_screen(text)
            face = emotion_of(self.whole) or "neutral"
            self._publish(AlertCommand("", shown, face))

    def abort(self) -> None:
        """End an answer that was cut off: send as the whole what was sent of it.

        Raises:
            Fenced: The lease may have ended.
        """
        sent = self.whole.removesuffix(self._next)
        if self._mode == "pieces" and sent.strip():
            with suppress(Unavailable, Overloaded):
                self._publish(AiMessageCommand("final", sent))

    def _send_thought(self) -> None:
        thought, self._thought = self._thought, ""
        if self._mode == "pieces" and thought.strip():
            with suppress(Unavailable, Overloaded):
                self._publish(AiMessageCommand("thought", thought))

    def _publish(self, command: AiMessageCommand | AlertCommand) -> None:
        self._shard.publish(self._session.device, command, self._session.dialect)


def _text_mode(session: SessionRecord) -> Literal["pieces", "alert", ""]:
    way = dialects.capabilities(session.dialect).text
    return "" if way == "alert" and session.edge else way


def _find(raw: str, piece: str) -> int:
    """Return where a piece ends in the text that begins with it, after optional white space."""
    start = len(raw) - len(raw.lstrip())
    # The second part of a long block of code begins with a fence that the text does not have.
    return start + len(piece if raw.startswith(piece, start) else piece.removeprefix(_FENCE))
