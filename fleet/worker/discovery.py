"""Finding out what a device can do: initialize, then its tools page by page."""

import asyncio
import logging
import secrets

from fleet.wire.jsonrpc import LARGEST_ID
from fleet.wire.mcp import ToolsPage, ToolSpec, parse_page, parse_server
from fleet.wire.words import Answer, Initialize, Initialized, ListTools
from fleet.worker.camera import introduce
from fleet.worker.resources import Resources
from fleet.worker.shard import Shard
from fleet.worker.waiters import Waiters

log = logging.getLogger(__name__)

MOST_PAGES = 32
MOST_TOOLS = 256
ANSWER_SECONDS = 10.0

_LOWEST_ID = 2**30
"""Calls have lower ids, so that no answer can be taken for another."""


class Discovery:
    """Asks devices for their tools, each at most once at a time."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.waiters = Waiters()
        self._running: dict[str, asyncio.Task[None]] = {}

    def start(self, shard: Shard, mac: str) -> None:
        """Ask in the background; what the device answers is kept for its next turns."""
        if mac not in self._running:
            task = self._running[mac] = shard.spawn(f"discovery {mac}", self._run(shard, mac))
            task.add_done_callback(lambda done: self._forget(mac, done))

    def restart(self, shard: Shard, mac: str) -> None:
        """Ask anew, because the device connected anew."""
        self.stop(mac)
        self.start(shard, mac)

    def stop(self, mac: str) -> None:
        """Ask no more, because the device says itself what it can do."""
        running = self._running.pop(mac, None)
        if running is not None:
            running.cancel()

    async def settled(self, mac: str, seconds: float) -> bool:
        """Wait until the device's tools are known, if they are being asked for; False when that takes longer."""
        try:
            async with asyncio.timeout(seconds):
                while mac in self._running:
                    await asyncio.wait([self._running[mac]])
        except TimeoutError:
            return False
        return True

    def _forget(self, mac: str, done: asyncio.Task[None]) -> None:
        if self._running.get(mac) is done:
            del self._running[mac]

    async def _run(self, shard: Shard, mac: str) -> None:
        epoch = await self._resources.tools.epoch(mac)
        answer = await self._ask(shard, mac, await introduce(self._resources, mac, new_number()))
        if answer is None or answer.error is not None:
            log.info("device has no tools to offer", extra={"reason": answer.error if answer else "no answer"})
            return
        board, firmware = parse_server(answer.result)
        shard.tell(mac, Initialized())
        tools, whole = await self._list(shard, mac)
        if not tools and not whole:
            return  # Nothing was read, so what is known from before still serves.
        about = {"tep": epoch if whole else "", "board": board, "fw": firmware}
        await self._resources.tools.write(
            mac, tools, {field: text for field, text in about.items() if text or field == "tep"}
        )
        log.info("tools discovered", extra={"tools": len(tools), "board": board, "firmware": firmware})

    async def _list(self, shard: Shard, mac: str) -> tuple[list[ToolSpec], bool]:
        """Return the tools of all pages, and whether they came whole; of a broken list what was read is kept."""
        tools: dict[str, ToolSpec] = {}
        seen: set[str] = set()
        cursor = ""
        while len(seen) < MOST_PAGES:
            seen.add(cursor)
            page = _page(await self._ask(shard, mac, ListTools(new_number(), cursor)))
            if page is None:
                log.warning("tool list is incomplete", extra={"tools": len(tools)})
                return list(tools.values()), False
            if page.damaged:
                log.warning("damaged tools left out", extra={"tools": page.damaged})
            tools.update((tool.name, tool) for tool in page.tools)
            cursor = page.cursor
            if not cursor or cursor in seen or len(tools) > MOST_TOOLS:
                break
        return list(tools.values())[:MOST_TOOLS], True

    async def _ask(self, shard: Shard, mac: str, request: Initialize | ListTools) -> Answer | None:
        with self.waiters.expect(mac, request.id) as answer:
            shard.tell(mac, request)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await answer
            except TimeoutError:
                return None


def _page(answer: Answer | None) -> ToolsPage | None:
    return parse_page(answer.result) if answer is not None and answer.error is None else None


def new_number() -> int:
    """Return an id for a request that is no call."""
    return secrets.randbelow(LARGEST_ID - _LOWEST_ID) + _LOWEST_ID
