"""A sentence that is synthesised before it is certain that it will be spoken."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

from fleet.ground.errors import FleetError
from fleet.roles.edge.services import EdgeServices
from fleet.wire.edge_messages import PrepareSentenceCommand, SpeakSentenceCommand
from fleet.wire.messages import AudioFormat

LONGEST_SECONDS = 20.0
"""Longest time for the whole sentence."""


class SentenceVoice(Protocol):
    """Speaks sentences."""

    def packets(
        self, text: str, language: str, downlink: AudioFormat, agent: str | None = None
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the packets of a sentence in the voice of an agent; see `fleet.adapters.speech.voice.Voice`."""


def packets_of(
    sentence: SpeakSentenceCommand | PrepareSentenceCommand, voice: SentenceVoice, downlink: AudioFormat
) -> AsyncGenerator[Sequence[bytes], None]:
    """Yield the packets of a sentence."""
    agent = () if sentence.agent is None else (sentence.agent,)
    return voice.packets(sentence.text, sentence.language, downlink, *agent)


class PreparedSentence:
    """Collects the packets of one sentence.

    Args:
        command: The sentence.
        services: Of the edge.
        voice: Of the session.
        downlink: Format of the device.
    """

    def __init__(
        self, command: PrepareSentenceCommand, services: EdgeServices, voice: SentenceVoice, downlink: AudioFormat
    ) -> None:
        self._command = command
        self._voice = voice
        self._downlink = downlink
        self._pieces: list[Sequence[bytes]] = []
        self._changed = asyncio.Event()
        self._over = False
        self._failure: Exception | None = None
        self._task = services.tasks.start("prepare sentence", self._run())

    def fits(self, sentence: SpeakSentenceCommand) -> bool:
        """Return whether this is the sentence that is to be spoken."""
        one, other = sentence, self._command
        return (one.text, one.language, one.agent) == (other.text, other.language, other.agent)

    def close(self) -> None:
        """Cancel the synthesis."""
        self._task.cancel()

    async def packets(self) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the packets, also those that are still to come; see `Voice.packets`.

        Raises:
            FleetError: The voice failed.
            TimeoutError: The sentence took too long.
        """
        at = 0
        try:
            while at < len(self._pieces) or not self._over:
                if at == len(self._pieces):
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                yield self._pieces[at]
                at += 1
            if self._failure:
                raise self._failure
        finally:
            self.close()

    async def _run(self) -> None:
        try:
            async with (
                asyncio.timeout(LONGEST_SECONDS),
                aclosing(packets_of(self._command, self._voice, self._downlink)) as pieces,
            ):
                async for packets in pieces:
                    self._pieces.append(packets)
                    self._changed.set()
        except (FleetError, TimeoutError) as error:
            self._failure = error
        finally:
            self._over = True
            self._changed.set()
