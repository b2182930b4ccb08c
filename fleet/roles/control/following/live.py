"""Live transcripts for the clients of this process: what is said on the devices that they watch."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from datetime import UTC, datetime

from fleet.adapters.redis.client.store import BLOCK_SECONDS
from fleet.adapters.redis.sessions.transcripts import WATCHED_SECONDS, TranscriptLine, Transcripts, is_line
from fleet.ground.errors import Overloaded
from fleet.roles.control.access import Principal
from fleet.roles.control.following.shares import ShareTaken, check_share

MOST_WATCHERS = 100
_MOST_WAITING = 256
_HEARTBEAT_SECONDS = 15.0


class Watcher:
    """One client that watches a device."""

    def __init__(self, who: Principal) -> None:
        self.who = who
        self.ended = False
        self.lines: asyncio.Queue[TranscriptLine | None] = asyncio.Queue(_MOST_WAITING)
        """None ends it."""

    def put(self, line: TranscriptLine | None) -> None:
        """Add a line; a client that does not keep up loses the oldest one."""
        if self.ended:
            return
        if self.lines.full():
            self.lines.get_nowait()
        self.lines.put_nowait(line)

    def end(self) -> None:
        self.put(None)
        self.ended = True


class LiveTranscripts:
    """Reads the transcripts of all watched devices with one command at a time.

    Args:
        transcripts: Of all devices.
    """

    def __init__(self, transcripts: Transcripts) -> None:
        self._transcripts = transcripts
        self._watchers: dict[str, set[Watcher]] = {}
        self._after: dict[str, str] = {}
        self._wanted = asyncio.Event()
        self._closed = False

    def check(self, who: Principal) -> None:
        """Check that there is a place.

        Raises:
            ShareTaken: The token or its tenant has all that it may have.
            Overloaded: There are too many watchers.
        """
        holders = [one.who for one in self._each()]
        if not self._closed:
            check_share(who, holders, MOST_WATCHERS, "watched transcripts")
        if self._closed or len(holders) >= MOST_WATCHERS:
            raise Overloaded("too many transcripts are watched")

    def close(self) -> None:
        """End all watchers: the process stops."""
        self._closed = True
        for one in self._each():
            one.end()

    def principals(self) -> set[Principal]:
        """Return who watches now."""
        return {one.who for one in self._each()}

    def end(self, principals: Collection[Principal]) -> None:
        """End the watchers of some principals."""
        for one in self._each():
            if one.who in principals:
                one.end()

    def _each(self) -> Iterator[Watcher]:
        return (one for watchers in self._watchers.values() for one in watchers)

    async def follow(self, who: Principal, mac: str, seconds: float) -> AsyncIterator[bytes]:
        """Yield frames of text/event-stream: what is said on a device from its next turn on."""
        try:
            self.check(who)
        except (Overloaded, ShareTaken):
            # Others came first since the request was checked.
            return
        watcher, clock = Watcher(who), asyncio.get_running_loop().time
        until = clock() + seconds
        self._watchers.setdefault(mac, set()).add(watcher)
        self._wanted.set()
        try:
            yield b"retry: 2000\n\n"
            while (left := until - clock()) > 0:
                try:
                    async with asyncio.timeout(min(left, _HEARTBEAT_SECONDS)):
                        line = await watcher.lines.get()
                except TimeoutError:
                    yield b": alive\n\n"
                    continue
                if line is None:
                    return
                yield _frame(line)
        finally:
            self._watchers[mac].discard(watcher)
            if not self._watchers[mac]:
                del self._watchers[mac]
                self._after.pop(mac, None)

    async def run(self) -> None:
        """Read until cancelled.

        Raises:
            Unavailable: Redis is away; call it again.
        """
        clock = asyncio.get_running_loop().time
        marked: dict[str, float] = {}
        while True:
            if not self._watchers:
                self._wanted.clear()
                await self._wanted.wait()
            marked = {mac: at for mac, at in marked.items() if mac in self._watchers}
            due = [mac for mac in self._watchers if clock() - marked.get(mac, -1e9) > WATCHED_SECONDS / 3]
            await self._transcripts.watch(due)
            marked |= dict.fromkeys(due, clock())
            await self._read({mac: self._after.get(mac, "0-0") for mac in self._watchers})

    async def _read(self, after: Mapping[str, str]) -> None:
        for line in await self._transcripts.read(after, BLOCK_SECONDS):
            watchers = self._watchers.get(line.mac)
            if watchers is None:
                continue
            self._after[line.mac] = line.id
            if is_line(line):
                for one in watchers:
                    one.put(line)


def _frame(line: TranscriptLine) -> bytes:
    at = datetime.fromtimestamp(line.at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    data = line.data.replace("\n", " ").replace("\r", " ")
    return f'event: {line.kind}\ndata: {{"at":"{at}","device":"{line.mac}","data":{data}}}\n\n'.encode()
