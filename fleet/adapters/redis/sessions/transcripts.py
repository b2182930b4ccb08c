"""Live transcripts: what is said on devices that somebody watches now.

The stream of a device exists while it is watched, and some seconds longer; nothing is kept after that.
"""

import json
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.events import BEGUN

WATCHED_SECONDS = 30
_MOST_LINES = 100
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """A line of a live transcript: its place, its kind, and its data as JSON."""

    mac: str
    id: str
    kind: str
    data: str

    @property
    def at(self) -> int:
        """When it was said, in Unix milliseconds."""
        return int(self.id.partition("-")[0])


class Transcripts:
    """Writes and reads lines. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, mac: str, lines: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Add lines, each with its kind; nothing is written if nobody watches any more."""
        pipe, key = self._store.client.pipeline(transaction=False), self._store.keys.transcript(mac)
        for kind, data in lines:
            text = json.dumps(data, ensure_ascii=False)
            pipe.execute_command("XADD", key, "NOMKSTREAM", "MAXLEN", _MOST_LINES, "*", "k", kind, "d", text)
        await self._store.ask(cast("Awaitable[list[Any]]", pipe.execute()))

    async def watch(self, macs: Iterable[str]) -> None:
        """Watch devices for `WATCHED_SECONDS` more; a turn that runs already is not seen."""
        for mac in macs:
            await self._store.call("fleet_events_wanted", [self._store.keys.transcript(mac)], [WATCHED_SECONDS, "0-0"])

    async def read(self, after: Mapping[str, str], seconds: float) -> list[TranscriptLine]:
        """Return new lines of watched devices; wait for them up to `seconds`.

        Args:
            after: By device the id of the last line that was read; `0-0` for none.
            seconds: At most `BLOCK_SECONDS`.
        """
        names = {self._store.keys.transcript(mac): mac for mac in after}
        places = {name: after[mac] for name, mac in names.items()}
        streams = await self._store.ask(self._store.reader.read_streams(places, _AT_ONCE, seconds))
        return [
            TranscriptLine(names[name], entry, fields.get("k", ""), fields.get("d", "{}"))
            for name, entries in streams
            for entry, fields in entries
        ]


def is_line(line: TranscriptLine) -> bool:
    """Whether it is a line, and not the mark with which a stream begins."""
    return line.kind != BEGUN
