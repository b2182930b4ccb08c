"""Deletes events, conversations and usage that are too old."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.adapters.sql.conversation_rows import HistoryLimits
from fleet.adapters.sql.database import Database
from fleet.core.usage import day_of

log = logging.getLogger(__name__)

MOST_EVENTS = 5_000_000
"""Events that are kept; the oldest ones go first."""
_EVERY_SECONDS = 600.0
_PAUSE_SECONDS = 0.2
"""Between two slices: others write meanwhile."""


@dataclass(frozen=True, slots=True)
class Lives:
    """How many days things are kept."""

    events: float = 30.0
    conversations: float = 30.0
    usage: float = 800.0


class HistorySweeper:
    """Deletes in small slices, so that other writers of SQLite wait for none of them.

    Args:
        database: The database.
        lives: How long what is kept.
    """

    def __init__(self, database: Database, lives: Lives) -> None:
        self._limits, self._lives = HistoryLimits(database), lives

    async def run(self, _: str = "") -> None:
        """Delete from time to time, until cancelled.

        Raises:
            Unavailable: The database does not answer; call it again.
        """
        while True:
            gone = await self.sweep(round(datetime.now(UTC).timestamp() * 1000), _PAUSE_SECONDS)
            if gone:
                log.info("old history deleted", extra={"rows": gone})
            await asyncio.sleep(_EVERY_SECONDS)

    async def sweep(self, now: int, pause: float = 0.0) -> int:
        """Delete all that is too old; return how many rows.

        Args:
            now: In milliseconds since 1970.
            pause: Seconds between two slices.
        """
        total, lives = 0, self._lives
        while True:
            slices = (
                await self._limits.drop_events(_before(now, lives.events), MOST_EVENTS),
                await self._limits.drop_conversations(_before(now, lives.conversations)),
                await self._limits.drop_usage(day_of(_before(now, lives.usage))),
            )
            total += sum(slices)
            if not any(slices):
                return total
            await asyncio.sleep(pause)


def _before(now: int, days: float) -> int:
    return now - round(days * 86_400_000)
