"""What lists say: names of events and times that go on, and columns that have their place in windows of any width."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Visitor
from tests.support.console_page import go, sign_in, signed_in
from tests.support.console_places import LOCALES, Language
from tests.support.console_site import ConsoleSite

DESK: Final[dict[str, Any]] = {"viewport": {"width": 1440, "height": 900}}
_CUT = """() => [...document.querySelectorAll('.grid .cells > *')]
  .filter((one) => one.checkVisibility()
    && one.getBoundingClientRect().right > one.closest('.grid').getBoundingClientRect().right)
  .map((one) => one.className)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    one = Visitor(browser, **DESK)
    yield one
    one.leave()
    assert one.complaints == []


@pytest.fixture(scope="module")
def desk(browser: Browser, site: ConsoleSite) -> Iterator[tuple[Visitor, Page]]:
    with signed_in(browser, site.url, **DESK) as desk:
        yield desk


@pytest.fixture
def page(desk: tuple[Visitor, Page]) -> Iterator[Page]:
    visitor, page = desk
    page.set_viewport_size(DESK["viewport"])
    go(page, "#/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    yield page
    complaints = list(visitor.complaints)
    visitor.complaints.clear()
    assert complaints == []


def rows(page: Page, site: ConsoleSite) -> None:
    """Show the list of devices, with its rows."""
    go(page, "#/devices")
    expect(page.get_by_role("row").filter(has_text=site.macs[0])).to_be_visible()


def test_times_go_on_while_a_page_is_open(visitor: Visitor, site: ConsoleSite) -> None:
    page = visitor.open(f"{site.url}/console/")
    page.clock.install()
    page.reload()
    sign_in(page)
    rows(page, site)
    seen = page.get_by_role("row").filter(has_text=site.macs[0]).get_by_role("gridcell").last
    expect(seen).to_have_text(re.compile("(sec|min) ago$"))
    page.clock.fast_forward("02:00:00")
    expect(seen).to_have_text("2 hr ago")
    site.run(site.let("session.started", site.macs[5], session="old", dialect="xiaozhi"))
    site.run(site.let("session.ended", site.macs[5], session="old", reason="goodbye"))
    go(page, "#/live")
    talked = page.locator(".talkers button").filter(has_text="Garden 6")
    expect(talked).to_contain_text("2 hr ago")
    page.clock.fast_forward("02:00:00")
    expect(talked).to_contain_text("4 hr ago")


@pytest.mark.parametrize(
    ("language", "names"),
    [("en", ("Device offline", "Turn failed", "later.kind")), ("zh", ("设备离线", "轮次失败", "later.kind"))],
)
def test_events_have_names_in_both_languages(
    browser: Browser, site: ConsoleSite, language: Language, names: tuple[str, ...]
) -> None:
    visitor, mac = Visitor(browser, locale=LOCALES[language]), site.macs[7]
    page = sign_in(visitor.open(f"{site.url}/console/"))
    go(page, f"#/devices/{mac}/events")
    expect(page.locator(".log-line").first).to_be_visible()
    # A server that is newer may know further kinds.
    for kind in ("device.offline", "turn.failed", "later.kind"):
        site.run(site.let(kind, mac))
    page.reload()
    expect(page.locator(".log-line .badge").nth(2)).to_be_visible()
    assert page.locator(".log-line .badge").all_inner_texts()[:3] == list(reversed(names))
    visitor.leave()
    assert visitor.complaints == []


def test_every_event_that_happens_is_added_to_all_events(page: Page, site: ConsoleSite) -> None:
    go(page, "#/live?view=events")
    expect(page.locator(".log-line").first).to_be_visible()
    for kind, text in (("state.drift", "Setting differs"), ("alert.opened", "Alert opened")):
        site.run(site.let(kind, site.macs[9]))
        expect(page.locator(".log-line .badge").first).to_have_text(text)


def test_no_column_of_the_devices_is_cut_in_a_window_of_any_width(page: Page, site: ConsoleSite) -> None:
    rows(page, site)
    # Each of these is one pixel wider than a window in which a column goes.
    for width in range(321, 1500, 20):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(_CUT) == [], width


def test_no_word_of_a_devices_settings_is_broken(page: Page, site: ConsoleSite) -> None:
    mac = site.macs[2]
    site.run(
        site.ask(f"PATCH /v1/devices/{mac}/desired", json={"desired": {"brightness": 40, "timezone": "Asia/Tokyo"}})
    )
    page.set_viewport_size({"width": 1200, "height": 750})
    go(page, f"#/devices/{mac}/desired")
    table = page.get_by_role("region", name="Settings")
    expect(table).to_contain_text("Brightness")
    assert table.evaluate("(one) => one.scrollWidth <= one.clientWidth"), "a column is cut"
    for name in table.locator("strong").all():
        assert name.evaluate("(one) => one.getClientRects().length") == 1


def test_the_sign_in_has_the_width_of_a_form(visitor: Visitor, site: ConsoleSite) -> None:
    page = visitor.open(f"{site.url}/console/")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    card = page.locator(".entry .card").bounding_box()
    assert card is not None and card["width"] == 420


def test_conversations_of_one_turn_have_no_length(page: Page, site: ConsoleSite) -> None:
    go(page, "#/conversations")
    expect(page.get_by_role("row").nth(1)).to_be_visible()
    lengths = {row.split("\t")[-2]: row.split("\t")[-1] for row in page.get_by_role("row").all_inner_texts()[1:]}
    assert lengths["1"] == "–" and lengths["2"] == "9s"
