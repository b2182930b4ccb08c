"""Every page and dialog of the console, in both languages, in light and dark, on a desk and on a phone; slow."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Visitor, sideways, unnamed
from tests.support.console_checks import NOTE_ANSWERS, foreign_texts, missed_by_keyboard, moving, settle
from tests.support.console_page import press, sign_in
from tests.support.console_places import DIALOGS, LOCALES, PLACES, WIDTHS, Language, opened, opener_of, show
from tests.support.console_site import ConsoleSite
from tests.support.npm_package import NoPackage, read_package

pytestmark = pytest.mark.slow
AXE = (
    "axe-core",
    "4.14.1",
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
_VIOLATIONS = """async () => {
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""
_OWNED = "() => document.title === 'owned' || document.querySelector('main script, main img[src=x]') !== null"
_FOCUSED = "() => document.activeElement.outerHTML.slice(0, 120)"
_IN_DIALOG = "() => document.activeElement?.closest('dialog') !== null"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture(scope="module")
def axe() -> str:
    try:
        return read_package(*AXE)["axe.min.js"].decode()
    except NoPackage as error:
        pytest.skip(str(error))


def enter(browser: Browser, site: ConsoleSite, **options: Any) -> tuple[Visitor, Page]:
    visitor = Visitor(browser, reduced_motion="reduce", **options)
    visitor.prepare(NOTE_ANSWERS)
    page = sign_in(visitor.open(f"{site.url}/console/"))
    expect(page.locator(".shell")).to_be_visible()
    return visitor, page


def faults_of(page: Page, language: Language) -> Iterator[str]:
    """Yield what is wrong with what a page shows; axe was loaded for the English one."""
    settle(page)
    if language == "en":
        yield from page.evaluate(_VIOLATIONS)
    yield from unnamed(page)
    yield from (one for one in sideways(page) if one.startswith("<html"))
    yield from (f"foreign text: {one}" for one in foreign_texts(page, language))
    yield from (f"moves: {one}" for one in moving(page))
    if page.evaluate(_OWNED):
        yield "a text of a device became a part of the page"


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LOCALES)
def test_every_page_and_dialog_is_usable(
    browser: Browser, site: ConsoleSite, axe: str, language: Language, scheme: str, size: str
) -> None:
    visitor, page = enter(browser, site, locale=LOCALES[language], color_scheme=scheme, viewport=WIDTHS[size])
    page.evaluate(axe)
    faults: list[str] = []
    for name, place in PLACES.items():
        show(page, place)
        faults += [f"{name}: {one}" for one in faults_of(page, language)]
    for dialog in DIALOGS:
        opener_of(page, dialog, language).click()
        box = opened(page)
        faults += [f"{dialog.place}, {dialog.opener}: {one}" for one in faults_of(page, language)]
        page.keyboard.press("Escape")
        expect(box).to_have_count(0)
    assert faults == []
    visitor.leave()
    assert visitor.complaints == []


@pytest.mark.parametrize("size", WIDTHS)
def test_the_keyboard_reaches_every_control_of_every_page(browser: Browser, site: ConsoleSite, size: str) -> None:
    visitor, page = enter(browser, site, viewport=WIDTHS[size])
    faults: list[str] = []
    for name, place in PLACES.items():
        show(page, place)
        faults += [f"{name}: {one}" for one in missed_by_keyboard(page)]
    assert faults == []
    visitor.leave()
    assert visitor.complaints == []


@pytest.mark.parametrize("size", WIDTHS)
def test_a_dialog_keeps_the_focus_until_escape_gives_it_back(browser: Browser, site: ConsoleSite, size: str) -> None:
    visitor, page = enter(browser, site, viewport=WIDTHS[size])
    faults: list[str] = []
    for dialog in DIALOGS:
        name, opener = f"{dialog.place}, {dialog.opener}", opener_of(page, dialog, "en")
        press(opener)
        box = opened(page)
        if not page.evaluate(_IN_DIALOG):
            faults.append(f"{name}: the focus stays outside")
        faults += [f"{name}: {one}" for one in missed_by_keyboard(page)]
        page.keyboard.press("Escape")
        expect(box).to_have_count(0)
        back = page.locator(dialog.before).first if dialog.before.startswith("details.menu") else opener
        if not back.evaluate("(one) => one === document.activeElement"):
            faults.append(f"{name}: the focus went to {page.evaluate(_FOCUSED)}")
    assert faults == []
    visitor.leave()
    assert visitor.complaints == []


def test_the_menu_of_a_phone_opens_and_closes_by_the_keyboard(browser: Browser, site: ConsoleSite) -> None:
    visitor, page = enter(browser, site, viewport=WIDTHS["phone"])
    menu = page.get_by_role("banner").get_by_role("button", name="Menu")
    menu.press("Enter")
    side = page.get_by_role("complementary")
    expect(side.get_by_role("link").first).to_be_focused()
    assert missed_by_keyboard(page) == []
    page.keyboard.press("Escape")
    expect(side).to_be_hidden()
    expect(menu).to_be_focused()
    menu.press("Enter")
    # It gets the focus after it was drawn.
    expect(side.get_by_role("link").first).to_be_focused()
    side.get_by_role("link", name="Devices").press("Enter")
    expect(side).to_be_hidden()
    expect(page.get_by_role("main")).to_be_focused()
    visitor.leave()
    assert visitor.complaints == []
