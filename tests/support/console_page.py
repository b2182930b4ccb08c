"""What tests do on every page of the console."""

import re

from playwright.sync_api import Page

from tests.support.browser import Visitor
from tests.support.control_server import FULL

_GO = """(place) => new Promise((done) => {
  const former = location.href;
  addEventListener("hashchange", () => setTimeout(done), { once: true });
  location.hash = place;
  if (location.href === former) done();
})"""


def sign_in(page: Page, token: str = FULL) -> Page:
    """Sign in with a token, in either language."""
    page.get_by_role("button", name=re.compile("^(Token|令牌)$")).click()
    page.get_by_role("textbox", name=re.compile("^(Token|令牌)$")).fill(token)
    page.get_by_role("button", name=re.compile("^(Sign in|登录)$")).click()
    return page


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
