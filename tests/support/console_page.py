"""What tests do on every page of the console."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import Visitor
from tests.support.control_server import FULL

_GO = """(place) => new Promise((done) => {
  const former = location.href;
  location.hash = place;
  const wanted = location.href;
  if (wanted === former) return done();
  const drawn = ({ newURL }) => {
    // That of a link which was clicked before may still come.
    if (newURL !== wanted) return;
    removeEventListener("hashchange", drawn);
    // The effects of what was drawn run after the next frame, in the order in which they were asked for.
    setTimeout(() => requestAnimationFrame(() => setTimeout(() => setTimeout(done))));
  };
  addEventListener("hashchange", drawn);
})"""
_HOLD_MESSAGES = """() => {
  const set = setTimeout, held = [];
  window.setTimeout = (work, pause, ...more) => (pause === 5_000 || pause === 10_000 ? held.push(work)
    : set(work, pause, ...more));
  window.releaseMessages = () => {
    window.setTimeout = set;
    for (const work of held) work();
  };
}"""


def sign_in(page: Page, token: str = FULL) -> Page:
    """Sign in with a token, in either language."""
    page.get_by_role("button", name=re.compile("^(Token|令牌)$")).click()
    page.get_by_role("textbox", name=re.compile("^(Token|令牌)$")).fill(token)
    page.get_by_role("button", name=re.compile("^(Sign in|登录)$")).click()
    return page


@contextmanager
def signed_in(browser: Browser, url: str, **options: Any) -> Iterator[tuple[Visitor, Page]]:
    """Give a window that is signed in with a token: most tests of a file share it, as to open one costs more than they.

    Args:
        browser: Of the test process.
        url: Of the site.
        options: Of the window, as those of `Visitor`.
    """
    visitor = Visitor(browser, **options)
    yield visitor, sign_in(visitor.open(f"{url}/console/"))
    visitor.leave()


def sign_in_with_account(page: Page, name: str, password: str) -> Page:
    """Sign in with an account."""
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    return page


def open_with_token(visitor: Visitor, url: str, token: str) -> Page:
    """Open a console without an owner, which asks for the code of the first one unless its tab has a token."""
    page = visitor.open(url)
    page.evaluate("(token) => sessionStorage.setItem('fleet.token', token)", token)
    page.reload()
    return page


def go(page: Page, place: str) -> None:
    """Go to a place of the console, such as `#/devices`, and return when its page is drawn in place of the former one.

    Without the wait a locator can find what the former page shows: the event of the address is a later task of the
    browser, and the console draws in that task's microtasks.
    """
    page.evaluate(_GO, place)


def press(control: Locator) -> None:
    """Press Enter on a control when it works.

    A dialog that still counts has a button that does not work yet. It takes no focus, so the key would reach what has
    it: the button that closes the dialog.
    """
    expect(control).to_be_enabled()
    control.press("Enter")


def follow_events(page: Page) -> None:
    """Wait until the page follows the events of the server: one that happens before may never reach it."""
    expect(page.locator(".side .link-state")).to_have_text(re.compile("^(Live|实时)$"))


@contextmanager
def lasting_messages(page: Page) -> Iterator[None]:
    """Let short messages stay as long as the block lasts: else they go after some seconds, seen or not."""
    page.evaluate(_HOLD_MESSAGES)
    yield
    page.evaluate("releaseMessages()")
