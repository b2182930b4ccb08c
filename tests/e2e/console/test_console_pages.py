"""Every page of the console, in both languages, in light and dark, on a desk and on a phone; slow.

With CONSOLE_PICTURES set to a folder, the pictures of the guide are written there.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.shot import repaint
from tests.support.browser import Visitor, running_browser, sideways, unnamed
from tests.support.console_page import go, sign_in
from tests.support.console_site import ConsoleSite
from tests.support.npm_package import NoPackage, read_package

pytestmark = pytest.mark.slow
AXE = (
    "axe-core",
    "4.14.1",
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
)
WIDTHS = {"desk": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
DEVICE = "#/devices/02:00:00:00:00:01"
PLACES = {
    "overview": "#/",
    "live": "#/live?device=02:00:00:00:00:01",
    "events": "#/live?view=events",
    "conversations": "#/conversations",
    "conversation": "#/conversations/1",
    "devices": "#/devices",
    "no-device": "#/devices?filter=board%3Dnone",
    "device": DEVICE,
    "device-desired": f"{DEVICE}/desired",
    "device-tools": f"{DEVICE}/tools",
    "device-memory": f"{DEVICE}/memory",
    "device-presence": f"{DEVICE}/presence",
    "device-events": f"{DEVICE}/events",
    "groups": "#/groups",
    "group": "#/groups/2",
    "new-group": "#/groups?make=1&query=online",
    "jobs": "#/jobs",
    "job": "#/jobs/2",
    "new-job": "#/jobs?make=1&query=tag.site%3Dberlin",
    "announcements": "#/announcements",
    "agents": "#/agents",
    "agent": "#/agents/1",
    "agent-versions": "#/agents/1/versions",
    "agent-assignments": "#/agents/1/assignments",
    "models": "#/providers",
    "alerts": "#/alerts",
    "alert-rules": "#/alerts/rules",
    "usage": "#/usage",
    "audit": "#/audit",
    "accounts": "#/accounts",
    "tokens": "#/tokens",
    "system": "#/system",
    "nowhere": "#/nowhere",
}
PICTURES = ("overview", "devices", "job")
_VIOLATIONS = """async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as browser:
        yield browser


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
    page = visitor.open(f"{site.url}/console/")
    sign_in(page)
    expect(page.locator(".shell")).to_be_visible()
    return visitor, page


def show(page: Page, place: str) -> None:
    go(page, place)
    expect(page.locator("main h1, dialog h2").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


@pytest.mark.parametrize("size", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_every_page_is_usable(
    browser: Browser, site: ConsoleSite, axe: str, language: str, scheme: str, size: str
) -> None:
    visitor, page = enter(browser, site, locale=language, color_scheme=scheme, viewport=WIDTHS[size])
    page.evaluate(axe)
    faults: list[str] = []
    for name, place in PLACES.items():
        show(page, place)
        faults += [f"{name}: {one}" for one in (*page.evaluate(_VIOLATIONS), *unnamed(page))]
        faults += [f"{name}: {one}" for one in sideways(page) if one.startswith("<html")]
    assert faults == []
    visitor.leave()
    assert visitor.complaints == []


@pytest.mark.skipif("CONSOLE_PICTURES" not in os.environ, reason="no folder for pictures is named")
@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_pictures_of_the_guide(browser: Browser, site: ConsoleSite, language: str) -> None:
    visitor, page = enter(browser, site, locale=language, color_scheme="light", viewport=WIDTHS["desk"])
    # A customer should not wonder about the device with a hostile name.
    site.run(site.ask(f"PATCH /v1/devices/{site.macs[2]}", json={"name": "Garden 3", "notes": ""}))
    ending = "" if language == "en-GB" else "-zh"
    for name in PICTURES:
        show(page, PLACES[name])
        picture = Path(os.environ["CONSOLE_PICTURES"]) / f"{name}{ending}.png"
        picture.write_bytes(repaint(browser, page.screenshot()))
    visitor.leave()
