"""Ends talks of operators who are no longer in the file of operators."""

import asyncio
import logging
from typing import Final

from fleet.adapters.files.operator_tokens import OperatorTokens
from fleet.core.permissions import DEVICES_COMMAND
from fleet.ground.errors import ConfigError
from fleet.roles.control.voice_devices import VoiceDevices

log = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 2.0


class OperatorTalks:
    """Looks at the operators' file again and again: a person or another process may change it.

    Args:
        operators: Of the file.
        voice: The devices of browsers.
    """

    def __init__(self, operators: OperatorTokens, voice: VoiceDevices) -> None:
        self._operators, self._voice = operators, voice

    async def run(self, fence: str) -> None:
        """Work until cancelled, by one process at a time."""
        while True:
            await self.look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """End the talks of operators whose token is gone, or may not command devices any more.

        Raises:
            Unavailable: Redis does not answer.
        """
        try:
            operators = self._operators.read()
        except ConfigError as error:
            # As their tokens, which are refused until the file can be read again: one may have been removed.
            log.warning("operator tokens cannot be read", extra={"reason": str(error)})
            operators = ()
        await self._voice.end_removed({one.digest for one in operators if DEVICES_COMMAND in one.scopes})
