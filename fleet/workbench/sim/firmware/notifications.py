"""Notifications of firmware 2.5: an idle device fetches a file, plays it and shows its subtitles (docs/notify.md)."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from fleet.workbench.sim.audio import toc
from fleet.workbench.sim.audio.ogg import OggError, OggReader
from fleet.workbench.sim.firmware.parts import DeviceParts
from fleet.workbench.sim.firmware.state_actions import StateActions
from fleet.workbench.sim.messages.message import JsonObject, item, number, text
from fleet.workbench.sim.network.slow_reader import HttpError, slow_get
from fleet.workbench.sim.records.audit import Finding
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.runtime.context import DeviceContext
from fleet.workbench.sim.runtime.state import State

_LOOK_SECONDS = 0.02
_UINT32 = 2**32
_SHORTEST_MS = 5.0


@dataclass(frozen=True, slots=True)
class Notice:
    """What a `notify` message names; `subtitles` are milliseconds of the audio and texts, in order."""

    url: str
    subtitles: tuple[tuple[float, str], ...]


def check(parsed: JsonObject, *, known: bool) -> Iterator[Finding]:
    """Yield what is wrong with a `notify` message; `known` says whether this firmware knows it."""
    if not known:
        yield "notify-unknown", "this firmware ignores it"
    url = text(parsed, "audio_url") or ""
    if not url.startswith(("http://", "https://")):
        yield "notify-form", f"audio_url {url[:64]!r}"
    entries = item(parsed, "subtitles")
    if entries is None:
        return
    if not isinstance(entries, list):
        yield "notify-form", "subtitles is no list"
    elif any(_subtitle(entry) is None for entry in entries):
        yield "notify-form", "a subtitle without start_ms, or without text"


class NotificationPlayer:
    """Plays one notification at a time; whatever the user does ends it.

    Args:
        context: What the device keeps over a restart.
        parts: The parts.
        actions: Changes the state.
    """

    def __init__(self, context: DeviceContext, parts: DeviceParts, actions: StateActions) -> None:
        self._profile = context.profile
        self._journal = context.journal
        self._parts = parts
        self._actions = actions
        self._notice: Notice | None = None
        self._running = False
        self._wanted = asyncio.Event()

    def receive(self, parsed: JsonObject) -> None:
        """Take a message; the main loop begins to play."""
        self._journal.judge(check(parsed, known=self._profile.notify))
        notice = _read(parsed) if self._profile.notify else None
        if notice:
            self._parts.main_loop.schedule(partial(self._start, notice))
        else:
            self._journal.note("ignored", type="notify")

    def stop(self) -> None:
        """Fall silent, and be idle."""
        if self._actions.state is not State.NOTIFYING:
            return
        self._notice = None
        self._parts.playback.clear()
        self._actions.go(State.IDLE)

    async def run(self) -> None:
        """Play what is wanted, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            notice = self._notice
            if notice is not None:
                fault = await self._play(notice)
                self._parts.main_loop.schedule(partial(self._finish, notice, fault))
            self._running = False

    async def _start(self, notice: Notice) -> None:
        if self._actions.state is not State.IDLE or self._running:
            self._journal.note("notify ignored", state=self._actions.state.value)
            return
        self._journal.note("notify", url=notice.url)
        self._actions.go(State.NOTIFYING)
        self._parts.playback.clear()
        self._notice, self._running = notice, True
        self._wanted.set()

    async def _finish(self, notice: Notice, fault: str) -> None:
        if self._notice is notice:
            self._journal.note("notified", fault=fault)
            self.stop()

    async def _play(self, notice: Notice) -> str:
        """Return why it was not played to its end, empty when it was.

        The file is read as fast as there is room for its packets, and the connection is closed with the last byte, or
        when somebody stops it.
        """
        shown = _Subtitles(notice, self._journal)
        try:
            async with slow_get(notice.url) as body:
                reader = OggReader()
                while self._notice is notice and (piece := await body.read()):
                    for packet in reader.feed(piece):
                        await self._push(notice, packet, shown)
            if self._notice is notice:
                reader.finish()
        except (OggError, HttpError, OSError, ValueError) as error:
            self._journal.violate("notify-audio", f"{notice.url}: {str(error) or type(error).__name__}")
            return str(error) or type(error).__name__
        playback = self._parts.playback
        while not playback.is_idle() and self._notice is notice:
            await asyncio.sleep(_LOOK_SECONDS)
            shown.show(playback.speaker.depth)
        if self._notice is not notice:
            return "stopped"
        playback.speaker.end_answer()
        return ""

    async def _push(self, notice: Notice, packet: bytes, shown: "_Subtitles") -> None:
        lasts, playback = toc.duration_ms(packet), self._parts.playback
        if lasts < _SHORTEST_MS:
            raise OggError("packets of less than 5 ms")
        while playback.speaker.full and self._notice is notice:
            await asyncio.sleep(_LOOK_SECONDS)
            playback.advance()
        if self._notice is notice:
            playback.push(packet, lasts / 1000)
            shown.pushed(lasts)
            shown.show(playback.speaker.depth)


class _Subtitles:
    """Shows the texts of a notification while its packets are played."""

    def __init__(self, notice: Notice, journal: Journal) -> None:
        self._left, self._journal = list(notice.subtitles), journal
        self._pushed = self._lasts = 0.0

    def pushed(self, lasts: float) -> None:
        """Note a packet of so many ms."""
        self._pushed, self._lasts = self._pushed + lasts, lasts

    def show(self, waiting: int) -> None:
        """Show what is due while so many packets wait."""
        while self._left and self._left[0][0] <= self._pushed - self._lasts * (waiting + 1):
            self._journal.note("subtitle", text=self._left.pop(0)[1])


def _read(parsed: JsonObject) -> Notice | None:
    """Return what firmware makes of a message; invalid subtitles are left out, the others sorted."""
    url, entries = text(parsed, "audio_url"), item(parsed, "subtitles")
    if not url or not isinstance(entries, list | None):
        return None
    found = (_subtitle(entry) for entry in entries or ())
    return Notice(url, tuple(sorted((one for one in found if one), key=lambda one: one[0])))


def _subtitle(entry: object) -> tuple[float, str] | None:
    if not isinstance(entry, dict):
        return None
    start, words = number(item(entry, "start_ms")), text(entry, "text")
    return (start, words) if start is not None and 0 <= start < _UINT32 and words is not None else None
