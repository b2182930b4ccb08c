"""A recogniser without phantoms: what it makes of noise is dropped before it becomes a command."""

import logging

from fleet.adapters.contained import has_room, options_of
from fleet.core.ports import Asr, Transcript
from fleet.core.text.phantoms import find_phantom
from fleet.ground.metrics import turns

log = logging.getLogger(__name__)


class FilteredAsr:
    """Any recogniser, built in or a plugin; a phantom becomes an empty transcript, and is counted."""

    def __init__(self, asr: Asr) -> None:
        self.inner = asr
        self._options = options_of(asr.transcribe, "language", "expected")

    @property
    def has_room(self) -> bool:
        """See `fleet.adapters.contained.has_room`."""
        return has_room(self.inner)

    async def transcribe(self, pcm: bytes, language: str = "", expected: str = "") -> Transcript:
        """See `fleet.core.ports.Asr`."""
        transcript = await self.inner.transcribe(pcm, **self._options(language=language, expected=expected))
        if phantom := find_phantom(transcript.text):
            turns.phantoms.add(phantom)
            log.info("phantom transcript dropped", extra={"reason": phantom, "pii": {"text": transcript.text}})
            return Transcript("", transcript.language)
        return transcript

    async def aclose(self) -> None:
        """See `fleet.core.ports.Asr`."""
        await self.inner.aclose()
