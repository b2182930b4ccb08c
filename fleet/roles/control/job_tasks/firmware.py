"""The kind `firmware`: an image for one board, and proof that it runs.

A device that starts asks bootstrap, which offers it the image; it installs it and starts again, which bootstrap sees
with the new version; then it connects. An image that does not run is known when the device starts or connects with
another version after it was offered the image.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.job_kinds.firmware import TAKEN, VERIFY_MS
from fleet.core.query.fields import version_number
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_tasks.calls import call_name
from fleet.roles.control.job_tasks.downloads import DownloadTask, offer_id, offer_of, verify_until

OFFERED: Final = "it was offered the image"
DOWNLOADING: Final = "it downloads the image"
STARTED: Final = "it started with the image; its connection is to come"


class FirmwareTask(DownloadTask):
    """Installs an image on each device."""

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Offer the image; restart the device, or wait for its next start, or tell it to install the image now."""
        how = self.order["how"]
        if how == "next_boot":
            ends = await self.offer(sent, self.order["until"], self.order["board"])
            away = {one.mac for one in ends}
            due = self.order["until"]
            waiting = [CallEnd(one.job, one.mac, one.attempt, "verifying", "", due) for one in sent]
            return [*ends, *(one for one in waiting if one.mac not in away)]
        ends = await self.offer(sent, verify_until(), "" if how == "push" else self.order["board"])
        away = {one.mac for one in ends}
        there = [one for one in sent if one.mac not in away]
        calls = [self.with_arguments(one, {"url": self.address(one)} if how == "push" else {}) for one in there]
        return [*ends, *await self.queue(there, calls)]

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        """Return what a start, a connection or a download shows."""
        data, own = _data(event), (one.job, one.attempt)
        if event.kind == TAKEN:
            return _note(one, DOWNLOADING) if offer_of(event, data) == own and one.text != STARTED else None
        if event.kind == "device.booted":
            return self._started(one, str(data.get("firmware", "")), offered=offer_of(event, data) == own)
        if one.text == STARTED:
            return _end(one, "ok", f"it runs {self.order['version']}")
        return _end(one, "error", "it went on without the image") if one.text in (OFFERED, DOWNLOADING) else None

    def give_up(self, one: Watched) -> CallEnd:
        """Return that a device has not started while the job lasted, or that nobody knows."""
        return super().give_up(one) if one.text or self.order["how"] != "next_boot" else _end(one, "expired", "")

    def _started(self, one: Watched, version: str, *, offered: bool) -> CallEnd | None:
        if version_number(version) == version_number(self.order["version"]):
            return _note(one, STARTED)
        if one.text in (DOWNLOADING, STARTED):
            return _end(one, "error", f"it came back with {version}")
        return _note(one, OFFERED) if offered else None

    async def recall(self, watched: Sequence[Watched]) -> Sequence[CallEnd]:
        """Withdraw the offers that no device was given."""
        named = {mac_text(one.mac): offer_id(one.job, one.attempt) for one in watched if not one.text}
        gone = await self._offers.withdraw(named, untaken=True)
        return [_end(one, "waiting", "its offer was withdrawn") for one in watched if mac_text(one.mac) in gone]


class AssetsTask(DownloadTask):
    """Gives each device an address of assets and restarts it; that it downloads them is the proof."""

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Queue both calls; a device makes them one after the other."""
        ends = await self.offer(sent, verify_until())
        away = {one.mac for one in ends}
        there = [one for one in sent if one.mac not in away]
        ends += await self.queue(there, [self.with_arguments(one, {"url": self.address(one)}) for one in there])
        away |= {one.mac for one in ends}
        there = [one for one in there if one.mac not in away]
        # Nobody collects the outcomes of these: their names are no attempts of the job.
        again = [self.call(mac_text(one.mac), f"{call_name(one.job, one.attempt)}-reboot") for one in there]
        await self.queue(there, [msgspec.structs.replace(one, tool="self.reboot") for one in again])
        return ends

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        """Return the success when the device downloads."""
        own = offer_of(event, _data(event)) == (one.job, one.attempt)
        return _end(one, "ok", "it downloads them") if own else None


def _note(one: Watched, text: str) -> CallEnd:
    fresh = one.state == "sent" or text == OFFERED
    due = milliseconds() + VERIFY_MS if fresh else one.place
    return CallEnd(one.job, one.mac, one.attempt, "verifying", text, due)


def _end(one: Watched, state: Any, text: str) -> CallEnd:
    return CallEnd(one.job, one.mac, one.attempt, state, text, 0)


def _data(event: StoredEvent) -> dict[str, Any]:
    try:
        found = json.loads(event.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
