"""Discover the tools of a device: MCP `initialize`, then `tools/list` page by page."""

import asyncio
import logging
import random
import secrets
from collections import Counter
from contextlib import suppress
from typing import Literal, cast

from pydantic import JsonValue

from fleet.adapters.redis.devices.devices import DeviceRecord
from fleet.adapters.redis.devices.tools import pack_tools
from fleet.ground.errors import Unavailable
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.pending import PendingCalls, wait_for_answer
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.sessions.camera import initialize_command
from fleet.roles.worker.sessions.known_lists import KnownList, KnownLists
from fleet.roles.worker.sessions.tool_list_budget import LIST_TOO_LONG, PAGE_TOO_LONG, GrowingList, ListBudget
from fleet.wire.json_text import dump, parse
from fleet.wire.jsonrpc import LARGEST_ID
from fleet.wire.mcp import LARGEST_LIST, next_cursor, parse_page, parse_server
from fleet.wire.messages import InitializeCommand, InitializedCommand, ListToolsCommand, ResponseEvent

log = logging.getLogger(__name__)

MOST_PAGES = 32
"""Bound of the pages of one list."""
ANSWER_SECONDS = 10.0
"""Longest wait for the answer to one request."""
LIST_SECONDS = 30.0
"""Longest time from the first page request to the last page. A real device takes a second, and longer while it takes
a photo."""
RETRY_SECONDS = 60.0
"""Shortest time until a device whose list was refused is asked again. The longest is twice as long, so that not all
such devices are asked at once."""
MOST_RETRIES = 10_000
"""Devices that wait for a retry; others are asked at their next hello."""

_DISCONNECTED = ResponseEvent("", error="the device disconnected")
_LOWEST_ID = 2**30
"""Tool calls have lower ids, so that answers are never confused."""


class Discovery:
    """Asks devices for their tools, each device once at a time.

    Args:
        resources: Of the worker.
        counts: Count lists that were not read to their end.
    """

    def __init__(self, resources: WorkerResources, counts: Counter[str]) -> None:
        self._resources = resources
        self._counts = counts
        self.pending = PendingCalls[ResponseEvent | None](_DISCONNECTED)
        self.lists = ListBudget(counts)
        """The lists that are being read."""
        self._known = KnownLists()
        self._running: dict[str, asyncio.Task[object]] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}

    def start(self, shard: Shard, mac: str, dialect: str, device: DeviceRecord | None = None) -> None:
        """Ask in the background, in this dialect; store the tools for the device's next turns.

        Args:
            shard: Of the device.
            mac: The device.
            dialect: To ask in.
            device: Its record, if it was just read.
        """
        self._cancel_retry(mac)
        if mac not in self._running:
            task = self._running[mac] = shard.spawn(f"discovery {mac}", self._run(shard, mac, dialect, device))
            task.add_done_callback(lambda done: _forget(self._running, mac, done))

    def restart(self, shard: Shard, mac: str, dialect: str, device: DeviceRecord | None = None) -> None:
        """Begin again: the device has reconnected."""
        self.stop(mac)
        self.start(shard, mac, dialect, device)

    async def resume(self, shard: Shard, mac: str, dialect: str, answer: ResponseEvent) -> None:
        """Begin again if an answer that nobody awaits is to a worker that handed the shard over while it asked."""
        asked = answer.id.isdecimal() and int(answer.id) >= _LOWEST_ID
        if not asked or mac in self._running or mac in self._retries:
            return
        device = await self._resources.devices.read(mac)
        if not device.tools_known:
            self.start(shard, mac, dialect, device)

    def stop(self, mac: str) -> None:
        """Stop: the device registers its tools itself."""
        self._cancel_retry(mac)
        running = self._running.pop(mac, None)
        if running is not None:
            running.cancel()

    async def wait_until_done(self, mac: str, seconds: float) -> Literal["idle", "done", "late"]:
        """Wait for a discovery of the device, if one runs.

        Returns:
            `idle` if none ran, `done` if the tools may be others now, `late` if it takes longer than `seconds`.
        """
        if mac not in self._running:
            return "idle"
        try:
            async with asyncio.timeout(seconds):
                while mac in self._running:
                    await asyncio.wait([self._running[mac]])
        except TimeoutError:
            return "late"
        return "done"

    def _cancel_retry(self, mac: str) -> None:
        if timer := self._retries.pop(mac, None):
            timer.cancel()

    def _retry_refused(self, shard: Shard, mac: str, tools: GrowingList, dialect: str) -> bool:
        """Return whether the list was refused; then ask the device again later."""
        if not tools.refused:
            return False
        log.warning("tool list refused, too many at once", extra={"again": True})
        self._cancel_retry(mac)
        if len(self._retries) < MOST_RETRIES:
            pause = RETRY_SECONDS * random.uniform(1, 2)
            self._retries[mac] = asyncio.get_running_loop().call_later(pause, self._retry, shard, mac, dialect)
        return True

    def _retry(self, shard: Shard, mac: str, dialect: str) -> None:
        self._retries.pop(mac, None)
        with suppress(Unavailable):  # the shard's next owner asks at the next hello
            self.start(shard, mac, dialect)

    async def _run(self, shard: Shard, mac: str, dialect: str, device: DeviceRecord | None) -> None:
        device = device or await self._resources.devices.read(mac)
        request = initialize_command(self._resources, device, new_request_id())
        answer = await self._ask(shard, mac, request, dialect, ANSWER_SECONDS)
        if answer is None or answer.error is not None:
            log.info("device has no tools to offer", extra={"reason": answer.error if answer else "no answer"})
            return
        board, firmware = parse_server(answer.result)
        shard.publish(mac, InitializedCommand(), dialect)
        with self.lists.begin(device.pages, self._known) as tools:
            whole = await self._list(shard, mac, tools, dialect)
            if self._retry_refused(shard, mac, tools, dialect):
                return
            if not tools and not whole:
                return  # nothing was read: keep the stored tools
            about = {"board": board, "fw": firmware, "dialect": dialect}
            about = {field: text for field, text in about.items() if text}
            about |= {"tep": device.epoch, "pg": tools.pages} if whole else {"tep": "", "pg": ""}
            if tools.unchanged and await self._resources.tools.keep(shard.owner, mac, about):
                log.info("tools are as before", extra={"board": board, "firmware": firmware})
                return
            known = self._known.find(tools.digests) if tools.skipped else None
            if known is None:
                self._parse_skipped(tools)  # some are left if the stored list is gone
                if self._retry_refused(shard, mac, tools, dialect):
                    return
                known = KnownList(await pack_tools(tools.document()), len(tools))
                if whole and tools.flawless:
                    self._known.put(tools.digests, known)
            await self._resources.tools.write(shard.owner, mac, known.stored, about)
        log.info("tools discovered", extra={"tools": known.tools, "board": board, "firmware": firmware})

    async def _list(self, shard: Shard, mac: str, tools: GrowingList, dialect: str) -> bool:
        """Read the tools of all pages; return whether the list is complete. Keep what was read of a broken list."""
        fault = await self._read_pages(shard, mac, tools, dialect)
        if not tools.unchanged and (fault or self._known.find(tools.digests) is None):
            fault = self._parse_skipped(tools) or fault
        if fault:
            self._counts[f"tools: {fault}"] += 1
            log.warning("tool list is incomplete", extra={"tools": len(tools), "reason": fault})
        return not fault or fault == LIST_TOO_LONG

    async def _read_pages(self, shard: Shard, mac: str, tools: GrowingList, dialect: str) -> str:
        """Return why the list is incomplete; empty if it is complete."""
        clock = asyncio.get_running_loop().time
        seen, cursor, until = set[str](), "", clock() + LIST_SECONDS
        while len(seen) < MOST_PAGES and not tools.refused:
            seen.add(cursor)
            left = min(ANSWER_SECONDS, until - clock())
            answer = await self._ask(shard, mac, ListToolsCommand(new_request_id(), cursor), dialect, left)
            if answer is None or answer.error is not None:
                return "too slow" if answer is None and clock() >= until else "broken off"
            text = answer.text or dump(answer.result)
            # Parsing a page that is longer than any valid list would cost time for nothing.
            if len(text) > LARGEST_LIST:
                return "unreadable"
            if not self.lists.skip(tools, text):
                fault = self._parse_skipped(tools) or self._parse(tools, answer.result, len(text))
                if fault:
                    return fault
            cursor = next_cursor(answer.result)
            if not cursor or cursor in seen:
                break
        return ""

    def _parse_skipped(self, tools: GrowingList) -> str:
        """Read the pages that were skipped, because the list has changed after all; return what is wrong with them."""
        skipped, tools.skipped = tools.skipped, []
        faults = (self._parse(tools, cast("JsonValue", parse(text)), len(text)) for text in skipped)
        return next(filter(None, faults), "")

    def _parse(self, tools: GrowingList, result: JsonValue, size: int) -> str:
        """Add a page to the list; return why the list ends with it, empty if it goes on."""
        page = parse_page(result, size)
        if page is None:
            tools.flawless = False
            return "unreadable"
        if page.damaged:
            log.warning("damaged tools left out", extra={"tools": page.damaged})
        fault = self.lists.add(tools, page.tools) or (PAGE_TOO_LONG if page.too_long else "")
        tools.flawless = tools.flawless and not page.damaged and not fault
        return fault

    async def _ask(
        self, shard: Shard, mac: str, request: InitializeCommand | ListToolsCommand, dialect: str, seconds: float
    ) -> ResponseEvent | None:
        """Return the answer; None if none comes in time."""
        with self.pending.register(mac, request.id) as answer:
            shard.publish(mac, request, dialect)
            return await wait_for_answer(answer, seconds, None)


def new_request_id() -> int:
    """Return an id for a request that is no tool call."""
    return secrets.randbelow(LARGEST_ID - _LOWEST_ID) + _LOWEST_ID


def _forget(running: dict[str, asyncio.Task[object]], mac: str, done: asyncio.Task[object]) -> None:
    if running.get(mac) is done:
        del running[mac]
