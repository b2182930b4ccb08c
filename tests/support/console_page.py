"""What tests do on every page of the console."""

import re

from playwright.sync_api import Page

from tests.support.control_server import FULL


def sign_in(page: Page, token: str = FULL) -> Page:
    """Sign in with a token, in either language."""
    page.get_by_role("button", name=re.compile("^(Token|令牌)$")).click()
    page.get_by_role("textbox", name=re.compile("^(Token|令牌)$")).fill(token)
    page.get_by_role("button", name=re.compile("^(Sign in|登录)$")).click()
    return page


def go(page: Page, place: str) -> None:
    """Go to a place of the console, such as `#/devices`."""
    page.evaluate("(place) => { location.hash = place; }", place)
