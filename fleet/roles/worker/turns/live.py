"""Shows a turn to whoever watches its device. A failure to do so does not disturb the turn."""

import logging
from collections.abc import Sequence
from typing import Any

from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.ground.errors import Unavailable
from fleet.wire.edge_messages import SpeakSentenceCommand, UtteranceEvent

log = logging.getLogger(__name__)

_LONGEST = 2_000


class LiveTranscript:
    """The live transcript of one turn.

    Args:
        transcripts: Of all devices.
        heard: What the turn answers.
    """

    def __init__(self, transcripts: Transcripts, heard: UtteranceEvent) -> None:
        self._transcripts, self._heard = transcripts, heard

    async def begin(self) -> None:
        """Show what was said."""
        await self._write([("turn.heard", {"text": self._heard.text[:_LONGEST], "language": self._heard.language})])

    async def show(self, sentences: Sequence[SpeakSentenceCommand]) -> None:
        """Show sentences of the answer."""
        if sentences:
            lines = [("turn.sentence", {"index": one.index, "text": one.text[:_LONGEST]}) for one in sentences]
            await self._write(lines)

    async def end(self, outcome: str) -> None:
        """Show how the turn ended."""
        await self._write([("turn.ended", {"outcome": outcome})])

    async def _write(self, lines: Sequence[tuple[str, dict[str, Any]]]) -> None:
        about = {"turn": self._heard.turn, "session": self._heard.session}
        try:
            await self._transcripts.write(self._heard.device, [(kind, {**about, **data}) for kind, data in lines])
        except Unavailable as error:
            log.debug("transcript not shown", extra={"reason": str(error)})
