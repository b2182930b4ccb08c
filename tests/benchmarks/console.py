"""`scripts/bench console`: how soon the console is there, how its list scrolls, and what many events do to it."""

import asyncio
import json
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import redis
from playwright.sync_api import Page
from rich.console import Console
from rich.table import Table

from fleet.adapters.redis.keys import Keys
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.local_servers.ports import LOOPBACK
from tests.benchmarks.console_scripts import NOW, PAINTED, SCROLL, WATCH
from tests.benchmarks.registry import SHARDS, TOKEN, ServedRegistry, make_registry, serve_registry
from tests.benchmarks.registry_data import FIRST_MAC
from tests.support.browser import running_browser
from tests.support.console_places import show

MARKS: Final[Mapping[str, tuple[float | None, str]]] = {
    "first paint, warm": (1_000.0, "ms"),
    "first rows, warm: CPU of the main thread": (1_000.0, "ms"),
    "first rows, warm": (None, "ms"),
    "scroll: CPU of the task with most of it": (50.0, "ms"),
    "scroll: longest task by the clock": (50.0, "ms"),
    "scroll: longest blank row": (200.0, "ms"),
    "scroll back: longest blank row": (200.0, "ms"),
    "scroll: longest frame": (None, "ms"),
    "scroll: most rows in the document": (200.0, ""),
    "scroll: rows passed": (None, ""),
    "events: CPU of the task with most of it": (50.0, "ms"),
    "events: longest task by the clock": (50.0, "ms"),
    "events: longest frame": (None, "ms"),
    "events: share of the main thread": (50.0, "%"),
    "events: age of the newest line of the log": (None, "ms"),
}
EVENT_PAGES: Final = ("#/live?view=events", "#/live", "#/", "#/devices")
"""Pages that are open while events come: log, who talks, overview, list of devices."""
_RUN_TASK = "RunTask"
_TICK = 0.02
_OVER = 0.1
"""Seconds between the start of events and the first look."""


@dataclass(frozen=True, slots=True)
class ConsoleResult:
    """One figure, and what it should be at most."""

    what: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleExperiment(Experiment[list[ConsoleResult]]):
    """One window on a desk."""

    name: ClassVar[str] = "console"

    devices: int
    rows: int
    """A second, while the list is scrolled."""
    rate: float
    """Events a second."""

    async def measure(self, progress: Progress) -> list[ConsoleResult]:
        with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
            progress(f"making {self.devices} devices")
            async with self.serve(Path(name)) as site:
                progress("looking at the console")
                return await asyncio.to_thread(self.look, site)

    @asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[ServedRegistry]:
        """Make devices, and run control over them."""
        address = f"sqlite:///{folder / 'control.db'}"
        await make_registry(address, self.devices)
        async with serve_registry(address, folder, self.devices) as site:
            yield site

    def look(self, site: ServedRegistry) -> list[ConsoleResult]:
        """Open a browser, and return all figures."""
        with running_browser() as browser:
            context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
            context.add_init_script(f"sessionStorage.setItem('fleet.token', '{TOKEN}')")
            page = context.new_page()
            page.set_default_timeout(120_000)
            values = _opened(page, f"http://{LOOPBACK}:{site.port}/console/#/devices")
            values += self._scrolled(page)
            with _events(site.redis_url, self.rate, self.devices):
                values += self._watched(page)
            return [ConsoleResult(what, value) for what, value in zip(MARKS, values, strict=True)]

    def _scrolled(self, page: Page) -> list[float]:
        with _traced(page) as down_tasks:
            down = page.evaluate(SCROLL, [self.seconds, self.rows])
        with _traced(page) as up_tasks:
            up = page.evaluate(SCROLL, [self.seconds, -self.rows])
        both = {name: max(down[name], up[name]) for name in down}
        cpu = max([*down_tasks, *up_tasks], default=0.0)
        return [cpu, both["task"], down["blank"], up["blank"], both["frame"], both["rows"], both["passed"]]

    def _watched(self, page: Page) -> list[float]:
        most = dict.fromkeys(("cpu", "task", "frame", "share", "age"), 0.0)
        for place in EVENT_PAGES:
            show(page, place)
            page.wait_for_timeout(_OVER * 1000)
            with _traced(page) as tasks:
                found = page.evaluate(WATCH, [self.seconds])
            found |= {"cpu": max(tasks, default=0.0), "share": sum(tasks) / self.seconds / 10}
            most = {name: max(value, found[name]) for name, value in most.items()}
        return list(most.values())


def _opened(page: Page, url: str) -> list[float]:
    rows = page.locator("[role=grid] [role=row]:not(.blank)").first
    page.goto(url)
    rows.wait_for()
    with _traced(page) as tasks:
        page.reload()
        rows.wait_for()
        painted, now = page.evaluate(PAINTED), page.evaluate(NOW)
    return [painted, sum(tasks), now]


@contextmanager
def _traced(page: Page) -> Iterator[list[float]]:
    """Give the milliseconds of a core of each task of the page's main thread; waiting is not counted."""
    browser, found = page.context.browser, list[float]()
    assert browser is not None
    browser.start_tracing(page=page, categories=["toplevel"])
    yield found
    found += _tasks(json.loads(browser.stop_tracing())["traceEvents"])


def _tasks(events: Sequence[dict[str, Any]]) -> list[float]:
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    mine = (one for one in events if names.get((one["pid"], one["tid"])) == "CrRendererMain")
    return [one.get("tdur", 0) / 1000 for one in mine if one["name"].endswith(_RUN_TASK)]


@contextmanager
def _events(url: str, rate: float, devices: int) -> Iterator[None]:
    """Write events as workers do, at a rate, until the block ends."""
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(url, rate, devices, over), name="events", daemon=True)
    writer.start()
    yield
    over.set()
    writer.join()


def _write(url: str, rate: float, devices: int, over: threading.Event) -> None:
    keys, begun, written = Keys(SHARDS), time.monotonic(), 0
    with redis.Redis.from_url(url) as client:
        while not over.wait(_TICK):
            pipe, due = client.pipeline(transaction=False), int((time.monotonic() - begun) * rate)
            for number in range(written, due):
                mac = mac_text(FIRST_MAC + number * 37 % devices)
                kind, data = _event(number)
                pipe.xadd(keys.events(keys.shard(mac)), {"k": kind, "m": mac, "d": json.dumps(data)})
            pipe.execute()
            written = due


def _event(number: int) -> tuple[str, dict[str, Any]]:
    session, turn = f"s{number // 10}", f"t{number // 4}"
    stages = {"heard": 300, "first_token": 250, "first_sentence": 400, "written": 900}
    made: tuple[tuple[str, dict[str, Any]], ...] = (
        ("session.started", {"session": session, "dialect": "xiaozhi"}),
        ("turn.answered", {"session": session, "turn": turn, "agent": "a", "language": "en", "stages": stages}),
        ("turn.spoken", {"turn": turn, "first_audio_ms": 900, "spoken_ms": 2_000, "interrupted": False}),
        ("tool.called", {"turn": turn, "tool": "self.audio_speaker.set_volume", "outcome": "ok", "ms": 80}),
        ("turn.failed", {"session": session, "turn": turn, "agent": "a", "reason": "model"}),
        ("session.ended", {"session": session, "reason": "goodbye"}),
    )
    return made[number % len(made)]


def show_console(console: Console, found: Sequence[ConsoleResult]) -> None:
    """Print the figures, with the load of the machine: beside others they are upper bounds."""
    table = Table("figure", "found", "at most")
    for one in found:
        mark, unit = MARKS[one.what]
        table.add_row(one.what, f"{one.value:,.0f} {unit}", "" if mark is None else f"{mark:,.0f} {unit}")
    console.print(table)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
