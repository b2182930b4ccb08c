"""A real Chromium for tests of web pages, and what a page must never do in it."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

LIMIT = 240.0
"""Seconds: other tests may take the processors meanwhile."""

_UNNAMED = """() => [...document.querySelectorAll('button, input, select, textarea, summary, [role=log]')]
  .filter((one) => one.checkVisibility() && !(one.ariaLabel || one.textContent.trim() || one.labels?.length))
  .map((one) => one.outerHTML)"""

_SMALL = """(least) => [...document.querySelectorAll('button, input, select, textarea, summary')]
  .filter((one) => one.checkVisibility())
  .map((one) => [one, (one.closest('label') || one).getBoundingClientRect()])
  .filter(([, box]) => box.height < least || box.width < least)
  .map(([one, box]) => `${one.outerHTML.slice(0, 80)} ${box.width}x${box.height}`)"""

_SIDEWAYS = """() => [document.documentElement, ...document.querySelectorAll('body *')]
  .filter((one) => one === document.documentElement || /auto|scroll/.test(getComputedStyle(one).overflowX))
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
  .map((one) => `${one.outerHTML.slice(0, 80)} ${one.scrollWidth} > ${one.clientWidth}`)"""

_FAINT = """(least) => {
  const draw = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    draw.clearRect(0, 0, 1, 1);
    draw.fillStyle = color;
    draw.fillRect(0, 0, 1, 1);
    return [...draw.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const linear = (v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const [x, y, z] = [r, g, b].map(linear);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = rgba(getComputedStyle(at).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  for (const one of document.querySelectorAll('body *')) {
    const texts = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!texts || !one.checkVisibility() || one.closest(':disabled, script, .hidden')) continue;
    const [a, b] = [light(rgba(getComputedStyle(one).color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least) faint.push(`${one.outerHTML.slice(0, 80)} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""


@contextmanager
def running_browser(*arguments: str) -> Iterator[Browser]:
    """Run Chromium without a window, with further arguments; skip where there is none."""
    # The first one has the same engine and no window at all: a page costs it a quarter of what it costs the others.
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("Chromium is not installed: scripts/setup --system chromium-headless-shell")
    expect.set_options(timeout=LIMIT * 1000)
    with sync_playwright() as playwright:
        # The sandbox does not run as root, which a container often is.
        args = ["--no-sandbox", "--disable-dev-shm-usage", *arguments]
        browser = playwright.chromium.launch(executable_path=program, args=args, timeout=LIMIT * 1000)
        yield browser
        browser.close()


class SharedBrowser:
    """One Chromium for all files of a test process: to start one, with what drives it, takes 1.2 seconds of a core.

    Playwright lets its loop of asyncio count as running as long as there is a browser. Tests with loops of their own
    bear that only while the browser is in use.
    """

    def __init__(self) -> None:
        self._running = ExitStack()
        self._browser: Browser | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def in_use(self) -> Iterator[Browser]:
        """Lend the browser to a block without a loop; it is started for the first one."""
        asyncio._set_running_loop(self._loop)
        try:
            if self._browser is None:
                # Sounds are played without a click.
                own = running_browser("--autoplay-policy=no-user-gesture-required")
                self._browser = self._running.enter_context(own)
                self._loop = asyncio.get_running_loop()
            yield self._browser
            for context in self._browser.contexts:
                context.close()
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        asyncio._set_running_loop(self._loop)
        try:
            self._running.close()
        finally:
            asyncio._set_running_loop(None)


class Visitor:
    """One person with a browser window, who opens pages and notes what went wrong in them.

    Args:
        options: Of the window: `viewport`, `color_scheme`, `locale`, `has_touch` and others that Playwright knows.
    """

    def __init__(self, browser: Browser, **options: Any) -> None:
        self._context = browser.new_context(**{"locale": "en-GB", **options})
        self._context.set_default_timeout(LIMIT * 1000)
        self.complaints: list[str] = []
        """Warnings and errors of the console, exceptions that nobody caught, and requests without an answer."""

    def prepare(self, script: str) -> None:
        """Run a script in each page before its own."""
        self._context.add_init_script(script)

    def open(self, url: str) -> Page:
        page = self._context.new_page()
        page.on("console", self._note)
        page.on("requestfailed", self._note_failure)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(url)
        return page

    def allow(self, *permissions: str) -> None:
        self._context.grant_permissions(list(permissions))

    def leave(self) -> None:
        self._context.close()

    def _note_failure(self, request: Request) -> None:
        # What the page itself gave up is not a failure.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"{request.method} {request.url}: {request.failure}")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("warning", "error"):
            self.complaints.append(f"{message.text} {urlsplit(message.location['url']).path}")


def forget(page: Page) -> None:
    """Let a page show nothing, and forget what it was told: the next server may have the port of the last one."""
    page.unroute_all()
    if page.url != "about:blank":
        page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    page.goto("about:blank")
    page.context.clear_cookies()


def unnamed(page: Page) -> list[str]:
    """Return the visible controls that a screen reader could not name."""
    found: list[str] = page.evaluate(_UNNAMED)
    return found


def too_small(page: Page, pixels: int = 40) -> list[str]:
    """Return the visible controls that a finger may miss."""
    found: list[str] = page.evaluate(_SMALL, pixels)
    return found


def faint(page: Page, ratio: float = 4.5) -> list[str]:
    """Return the visible texts with less contrast than WCAG AA wants; disabled controls are exempt."""
    found: list[str] = page.evaluate(_FAINT, ratio)
    return found


def sideways(page: Page) -> list[str]:
    """Return what scrolls sideways: the page itself, or a part of it."""
    found: list[str] = page.evaluate(_SIDEWAYS)
    return found
