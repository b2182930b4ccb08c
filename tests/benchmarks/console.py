"""`scripts/bench console`: how soon the console is there, and how its list of many devices scrolls."""

import asyncio
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from playwright.sync_api import Page
from rich.console import Console
from rich.table import Table

from fleet.workbench.bench.experiment import Experiment, Progress
from fleet.workbench.local_servers.ports import LOOPBACK
from tests.benchmarks.registry import TOKEN, make_registry, serve_registry
from tests.support.browser import running_browser

MARKS = {
    "first paint, warm": (1_000.0, "ms"),
    "first rows, warm": (None, "ms"),
    "longest task while scrolling": (50.0, "ms"),
    "CPU of the task with most of it": (50.0, "ms"),
    "longest blank row": (200.0, "ms"),
    "longest frame": (None, "ms"),
    "most rows in the document": (200.0, ""),
    "rows passed": (None, ""),
}
_PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_NOW = "() => performance.now()"
_SCROLL = """async ([seconds, perSecond]) => {
  const view = document.querySelector('[role=grid]');
  const row = view.querySelector('[role=row]').getBoundingClientRect().height;
  const found = { task: 0, blank: 0, frame: 0, rows: 0, passed: 0 };
  const tasks = new PerformanceObserver((list) => {
    for (const one of list.getEntries()) found.task = Math.max(found.task, one.duration);
  });
  tasks.observe({ entryTypes: ['longtask'] });
  const begun = performance.now();
  let last = begun, blankSince = 0;
  while (last - begun < seconds * 1000) {
    const at = await new Promise(requestAnimationFrame);
    const inView = view.getBoundingClientRect();
    const blank = [...view.querySelectorAll('.blank')].some((one) => {
      const box = one.getBoundingClientRect();
      return box.bottom > inView.top && box.top < inView.bottom;
    });
    blankSince = blank ? blankSince || at : 0;
    if (blankSince) found.blank = Math.max(found.blank, at - blankSince);
    found.frame = Math.max(found.frame, at - last);
    found.rows = Math.max(found.rows, view.querySelectorAll('[role=row]').length);
    view.scrollTop += Math.min(0.1, (at - last) / 1000) * perSecond * row;
    last = at;
  }
  tasks.disconnect();
  found.passed = Math.max(...[...view.querySelectorAll('[role=row]')].map((one) => Number(one.ariaRowIndex)));
  return found;
}"""


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

    async def measure(self, progress: Progress) -> list[ConsoleResult]:
        with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
            folder = Path(name)
            address = f"sqlite:///{folder / 'control.db'}"
            progress(f"making {self.devices} devices")
            await make_registry(address, self.devices)
            async with serve_registry(address, folder, self.devices) as (_, port):
                progress("looking at the console")
                return await asyncio.to_thread(self._look, f"http://{LOOPBACK}:{port}/console/")

    def _look(self, url: str) -> list[ConsoleResult]:
        with running_browser() as browser:
            context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB")
            context.add_init_script(f"sessionStorage.setItem('fleet.token', '{TOKEN}')")
            page = context.new_page()
            rows = page.locator("[role=grid] [role=row]:not(.blank)").first
            for _ in range(2):
                page.goto(f"{url}#/devices")
                page.reload()
                rows.wait_for()
            painted, shown = page.evaluate(_PAINTED), page.evaluate(_NOW)
            return self._figures(page, painted, shown)

    def _figures(self, page: Page, painted: float, shown: float) -> list[ConsoleResult]:
        browser = page.context.browser
        assert browser is not None
        browser.start_tracing(page=page, categories=["toplevel"])
        found: dict[str, Any] = page.evaluate(_SCROLL, [self.seconds, self.rows])
        cpu = _most_cpu(json.loads(browser.stop_tracing())["traceEvents"])
        figures = (found[name] for name in ("blank", "frame", "rows", "passed"))
        values = (painted, shown, found["task"], cpu, *figures)
        return [ConsoleResult(what, value) for what, value in zip(MARKS, values, strict=True)]


def _most_cpu(events: Sequence[dict[str, Any]]) -> float:
    """Return the most milliseconds of a core that a task of the page's main thread took; waiting is not counted."""
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    mine = (one for one in events if names.get((one["pid"], one["tid"])) == "CrRendererMain")
    return max((one.get("tdur", 0) / 1000 for one in mine if one["name"].endswith("RunTask")), default=0.0)


def show_console(console: Console, found: Sequence[ConsoleResult]) -> None:
    """Print the figures, with the load of the machine: beside others they are upper bounds."""
    table = Table("figure", "found", "at most")
    for one in found:
        mark, unit = MARKS[one.what]
        table.add_row(one.what, f"{one.value:,.0f} {unit}", "" if mark is None else f"{mark:,.0f} {unit}")
    console.print(table)
    console.print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
