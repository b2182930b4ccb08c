"""The console in a real Chromium, against a control with a made-up fleet."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import Visitor, sideways, unnamed
from tests.support.console_checks import NOTE_ANSWERS, foreign_texts, moving, settle
from tests.support.console_page import follow_events, go, lasting_messages, sign_in, sign_in_with_account, signed_in
from tests.support.console_places import LOCALES, PLACES, WIDTHS, show
from tests.support.console_site import COUNT, HOSTILE, ConsoleSite

Visit = Callable[..., Visitor]
DESK = {"viewport": WIDTHS["desk"]}
SAMPLE = ("device", "job", "alert", "agents")
"""Pages that the short run looks at in Chinese, in the dark, on a phone; the slow run looks at all."""


HOLD_PLACES = """() => {
  const [set, clear, held] = [setTimeout, clearTimeout, new Map()];
  window.places = held;
  window.setTimeout = (work, pause, ...more) => {
    if (pause !== 300) return set(work, pause, ...more);
    const name = -1 - held.size;
    held.set(name, work);
    document.documentElement.dataset.places = held.size;
    return name;
  };
  window.clearTimeout = (name) => { if (!held.delete(name)) clear(name); };
}"""
"""Holds back what writes the place of a list into the address."""

TYPE_AT_ONCE = """() => new MutationObserver((_, watch) => {
  const field = document.querySelector("main [role=combobox]");
  if (!field) return;
  watch.disconnect();
  field.value = "online";
  field.dispatchEvent(new Event("input", { bubbles: true }));
}).observe(document.body, { childList: true, subtree: true })"""
"""Types into the query for devices as soon as it is drawn."""

NOTE_EVENTS = """() => {
  const set = setTimeout;
  let handed = 0;
  window.setTimeout = (work, pause, ...more) => set((...given) => {
    work(...given);
    if (pause === 300) document.documentElement.dataset.handed = handed += 1;
  }, pause, ...more);
}"""
"""Counts how often a part of *Live* has got events."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Open a window; at the end nothing may have complained in it, the policy of the page neither."""
    visitors: list[Visitor] = []

    def enter(**options: object) -> Visitor:
        visitors.append(Visitor(browser, **{**DESK, **options}))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.leave()
        assert visitor.complaints == []


@pytest.fixture(scope="module")
def desk(browser: Browser, site: ConsoleSite) -> Iterator[tuple[Visitor, Page]]:
    with signed_in(browser, site.url, **DESK) as desk:
        yield desk


@pytest.fixture
def page(desk: tuple[Visitor, Page]) -> Iterator[Page]:
    visitor, page = desk
    go(page, "#/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    follow_events(page)
    yield page
    complaints = list(visitor.complaints)
    visitor.complaints.clear()
    assert complaints == []


def forgive(visitor: Visitor, sign: str) -> None:
    """Allow requests that were refused: Chromium itself notes each of them."""
    assert [text for text in visitor.complaints if sign not in text] == []
    visitor.complaints.clear()


def hold_first(page: Page, pattern: str) -> list[Route]:
    """Let the first of some requests wait; return the list in which it is found."""
    held: list[Route] = []

    def take(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(pattern, take)
    return held


def wait_for(page: Page, held: list[Route]) -> Route:
    while not held:
        page.wait_for_timeout(20)
    return held[0]


def test_somebody_signs_in_and_sees_the_fleet(page: Page) -> None:
    expect(page.get_by_role("link", name=re.compile(rf"^Online \d+ of {COUNT} devices"))).to_be_visible()
    page.get_by_role("link", name=re.compile(r"^Offline \d+")).click()
    expect(page.get_by_role("combobox", name="Query for devices")).to_have_value("online=false")
    expect(page.get_by_role("row", name=re.compile("Online"))).to_have_count(0)


@pytest.mark.slow
def test_a_wrong_token_is_refused_in_words(visit: Visit, site: ConsoleSite) -> None:
    visitor = visit()
    page = visitor.open(f"{site.url}/console/")
    sign_in(page, "flt_wrong")
    expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
    page.close()
    forgive(visitor, "401")


def test_a_chinese_phone_gets_a_chinese_console_that_fits(visit: Visit, site: ConsoleSite) -> None:
    visitor = visit(locale=LOCALES["zh"], color_scheme="dark", viewport=WIDTHS["phone"], reduced_motion="reduce")
    visitor.prepare(NOTE_ANSWERS)
    page = sign_in(visitor.open(f"{site.url}/console/"))
    expect(page.get_by_role("heading", name="总览", level=1)).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    for place in SAMPLE:
        show(page, PLACES[place])
        settle(page)
        assert [*foreign_texts(page, "zh"), *moving(page), *unnamed(page)] == [], place
        assert [one for one in sideways(page) if one.startswith("<html")] == [], place
    page.get_by_role("button", name="菜单").click()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Agents", level=1)).to_be_visible()


def test_an_error_in_a_query_is_shown_at_its_place(desk: tuple[Visitor, Page], page: Page) -> None:
    go(page, "#/devices")
    field = page.get_by_role("combobox", name="Query for devices")
    field.fill("online AND (board=x")
    field.press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("At character")
    expect(field).to_have_attribute("aria-invalid", "true")
    forgive(desk[0], "400")


def test_hostile_texts_of_devices_stay_text(page: Page, site: ConsoleSite) -> None:
    go(page, "#/devices")
    # A name, and a board.
    expect(page.get_by_role("grid").get_by_text(HOSTILE)).to_have_count(2)
    go(page, f"#/devices/{site.macs[0]}/tools")
    expect(page.get_by_text(f"self.{HOSTILE}"[:128])).to_be_visible()
    page.get_by_text(f"self.{HOSTILE}"[:128]).click()
    expect(page.get_by_text(HOSTILE, exact=True).first).to_be_visible()
    go(page, f"#/devices/{site.macs[0]}/memory")
    expect(page.get_by_text(HOSTILE)).to_have_count(3)
    page.get_by_role("button", name=f"Cancel: {HOSTILE}").first.click()
    expect(page.get_by_text(HOSTILE)).to_have_count(2)
    for place in ("#/jobs/2", "#/jobs/3", "#/alerts", "#/alerts/1"):
        go(page, place)
        expect(page.get_by_role("main").get_by_text(HOSTILE).first).to_be_visible()
    assert "owned" not in page.title()


def test_what_is_said_is_shown_word_by_word(page: Page, site: ConsoleSite) -> None:
    mac = site.macs[4]
    go(page, f"#/live?device={mac}")
    expect(page.get_by_text("Watching")).to_be_visible()
    about = {"turn": "t-live", "session": "s-live"}
    log = page.get_by_role("log", name="Transcript")
    site.run(site.watched(mac))
    site.run(site.say(mac, "turn.heard", text=HOSTILE, language="en", **about))
    expect(log.get_by_text(HOSTILE)).to_be_visible()
    site.run(site.say(mac, "turn.sentence", index=0, text="One.", **about))
    site.run(site.say(mac, "turn.sentence", index=1, text="Two.", **about))
    expect(log.get_by_text("One. Two.")).to_be_visible()
    site.run(site.let("tool.called", mac, tool=HOSTILE, outcome="ok", ms=120, turn="t-live"))
    expect(log.get_by_text(HOSTILE)).to_have_count(2)
    site.run(site.say(mac, "turn.ended", outcome="answered", **about))
    site.run(site.let("turn.spoken", mac, turn="t-live", first_audio_ms=900, spoken_ms=1, interrupted=False))
    expect(log.get_by_role("img")).to_be_visible()
    assert "owned" not in page.title()


def test_hostile_names_of_boards_and_images_stay_text(page: Page, site: ConsoleSite) -> None:
    main = page.get_by_role("main")
    go(page, "#/firmware")
    expect(page.get_by_role("heading", name=HOSTILE, level=2)).to_be_visible()
    row = page.get_by_role("region", name=HOSTILE).get_by_role("row").nth(1)
    site.run(site.let("firmware.taken", site.macs[2], offer=f"{HOSTILE}-1"))
    expect(main.get_by_role("link", name=f"job {HOSTILE}")).to_be_visible()
    page.get_by_role("button", name="Upload an image").click()
    expect(page.locator("datalist option")).not_to_have_count(0)
    assert page.locator("datalist option").evaluate_all("(all) => all.map((one) => one.value)").count(HOSTILE) == 1
    page.keyboard.press("Escape")
    row.get_by_role("button", name=f"Delete {HOSTILE}").click()
    expect(page.get_by_role("dialog").get_by_role("heading", name=HOSTILE)).to_be_visible()
    page.keyboard.press("Escape")
    row.get_by_role("link", name="Roll out").click()
    expect(page.get_by_role("combobox", name="Image").locator("option:checked")).to_have_text(f"{HOSTILE} · {HOSTILE}")
    go(page, "#/jobs/4")
    expect(page.get_by_role("heading", name=HOSTILE[:63], level=1)).to_be_visible()
    expect(main.get_by_role("link", name=f"{HOSTILE} · {HOSTILE}")).to_be_visible()
    assert page.title() != "owned"


def test_names_are_asked_for_one_request_after_the_other(page: Page, site: ConsoleSite) -> None:
    held: list[Route] = []
    # Nothing here asks for names, so the page knows none; it follows what happens.
    page.reload()
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    follow_events(page)
    page.route(re.compile(r"/v1/devices\?.*filter=mac"), lambda route: held.append(route))
    go(page, "#/live")
    for mac in site.macs:
        site.run(site.let("session.started", mac, session="named", dialect="xiaozhi"))
    talkers = page.locator(".talkers button")
    expect(talkers).to_have_count(COUNT)
    answered = 0
    while talkers.filter(has=page.locator(".mono")).count():
        page.wait_for_timeout(20)
        if held:
            (request,) = held
            held.clear()
            request.continue_()
            answered += 1
    assert answered <= 2 + COUNT // 30
    page.unroute_all(behavior="wait")


@pytest.mark.slow
def test_events_change_what_is_shown(page: Page, site: ConsoleSite) -> None:
    go(page, "#/devices")
    row = page.get_by_role("row", name=re.compile(re.escape(site.macs[3])))
    expect(row).to_contain_text("Online")
    site.run(site.let("device.offline", site.macs[3]))
    expect(row).to_contain_text("Offline")
    site.run(site.let("device.online", site.macs[3]))
    expect(row).to_contain_text("Online")


def test_an_expired_session_leads_to_the_sign_in_and_back(visit: Visit, site: ConsoleSite) -> None:
    visitor = visit()
    page = sign_in(visitor.open(f"{site.url}/console/"))
    go(page, "#/groups")
    expect(page.get_by_role("link", name="Berlin")).to_be_visible()
    page.route("**/v1/**", lambda route: route.fulfill(status=401, json={"code": "token-needed"}))
    go(page, "#/audit")
    expect(page.get_by_text("You were signed out")).to_be_visible()
    page.unroute("**/v1/**")
    sign_in(page)
    expect(page.get_by_role("heading", name="Audit log")).to_be_visible()
    page.close()
    forgive(visitor, "401")


def test_a_lost_stream_of_events_is_told_and_mended(visit: Visit, site: ConsoleSite) -> None:
    visitor = visit()
    page = visitor.open(f"{site.url}/console/")
    page.route("**/v1/events", lambda route: route.abort())
    sign_in(page)
    expect(page.get_by_text("The connection to the server is lost.")).to_be_visible()
    page.unroute("**/v1/events")
    expect(page.get_by_text("The connection to the server is lost.")).to_have_count(0)
    expect(page.locator(".side .link-state")).to_have_text("Live")
    page.close()
    forgive(visitor, "ERR_FAILED")


def test_the_keyboard_suffices_for_the_list_of_devices(page: Page, site: ConsoleSite) -> None:
    go(page, "#/devices")
    grid = page.get_by_role("grid", name="Devices")
    grid.focus()
    for key in ("ArrowDown", "ArrowDown", " ", "ArrowUp", " "):
        grid.press(key)
    expect(page.get_by_role("region", name="Marked devices")).to_contain_text("2 devices marked")
    grid.press("End")
    expect(page.get_by_role("row", name=re.compile(site.macs[-1]))).to_be_visible()
    grid.press("Home")
    grid.press("Enter")
    expect(page.get_by_role("heading", name="Kitchen 1", level=1)).to_be_visible()


def test_the_place_in_a_list_that_was_left_does_not_come_back(page: Page) -> None:
    go(page, "#/devices")
    page.evaluate(HOLD_PLACES)
    page.get_by_role("grid", name="Devices").press("End")
    expect(page.locator("html")).to_have_attribute("data-places", "1")
    page.evaluate("() => { location.hash = '#/devices?filter=online'; for (const keep of places.values()) keep(); }")
    expect(page.get_by_role("combobox", name="Query for devices")).to_have_value("online")
    assert page.evaluate("location.hash").startswith("#/devices?filter=online")
    page.reload()


def test_what_is_typed_as_soon_as_a_field_is_there_stays(page: Page, site: ConsoleSite) -> None:
    page.evaluate(TYPE_AT_ONCE)
    go(page, "#/devices")
    expect(page.get_by_role("row", name=re.compile(site.macs[0]))).to_be_visible()
    expect(page.get_by_role("combobox", name="Query for devices")).to_have_value("online")


def test_a_device_is_not_shown_in_place_of_the_next_one(page: Page, site: ConsoleSite) -> None:
    go(page, f"#/devices/{site.macs[0]}")
    former = page.get_by_role("heading", name="Kitchen 1", level=1)
    expect(former).to_be_visible()
    page.get_by_role("textbox", name="Ask its agent").fill("For the kitchen")
    held = hold_first(page, f"**/v1/devices/{site.macs[3].replace(':', '%3A')}")
    go(page, f"#/devices/{site.macs[3]}")
    expect(former).to_have_count(0)
    wait_for(page, held).continue_()
    expect(page.get_by_role("heading", name="Room 4", level=1)).to_be_visible()
    expect(page.get_by_role("textbox", name="Ask its agent")).to_have_value("")
    page.unroute_all()


def test_an_event_that_comes_while_a_log_is_read_is_shown(page: Page, site: ConsoleSite) -> None:
    held = hold_first(page, "**/v1/events?kinds=turn.failed*")
    go(page, "#/live?view=failures")
    read = wait_for(page, held)
    page.evaluate(NOTE_EVENTS)
    site.run(site.let("turn.failed", turn="meanwhile", session="s", user="x", answer=""))
    # The page itself, and the log.
    expect(page.locator("html")).to_have_attribute("data-handed", "2")
    read.fulfill(json={"items": [], "next": None, "gap": False})
    expect(page.get_by_text("turn meanwhile")).to_be_visible()
    page.unroute_all()
    page.reload()


@pytest.mark.slow
def test_a_job_is_made_after_a_dry_run(page: Page) -> None:
    go(page, "#/devices?filter=tag.site%3Dlyon")
    page.get_by_role("button", name="Mark all that match").click()
    page.get_by_role("link", name="Make a job").click()
    page.get_by_role("button", name="Ask for the state").click()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("combobox", name="Query")).to_have_value("tag.site=lyon")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text(re.compile(r"^\d+ online now$"))).to_be_visible()
    page.get_by_role("button", name="Begin", exact=True).click()
    expect(page.get_by_role("heading", name="Ask for the state", level=1)).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("main").get_by_text(re.compile("^(Stopping|Stopped)$")).first).to_be_visible()


@pytest.mark.slow
def test_an_agent_is_edited_published_and_taken_back(page: Page) -> None:
    go(page, "#/agents/1")
    page.get_by_role("textbox", name="Greeting").fill("Welcome!")
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("button", name="Publish").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("greeting: Welcome!")).to_be_visible()
    with lasting_messages(page):
        dialog.get_by_role("button", name="Publish").click()
        expect(page.get_by_text("Version 3 is in use")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("main").get_by_text("Version 2", exact=True)).to_be_visible()


@pytest.mark.slow
def test_a_site_without_devices_says_what_to_do(visit: Visit, tmp_path: Path) -> None:
    with ConsoleSite.running(tmp_path, "empty") as empty:
        page = sign_in(visit().open(f"{empty.url}/console/"))
        expect(page.get_by_role("heading", name="Connect your first device")).to_be_visible()
        go(page, "#/devices")
        expect(page.get_by_text("There is no device yet")).to_be_visible()
        go(page, "#/firmware")
        expect(page.get_by_role("heading", name="There is no image yet")).to_be_visible()
        expect(page.get_by_role("heading", name="Nothing was rolled out yet")).to_be_visible()
        page.goto("about:blank")


@pytest.mark.slow
def test_a_new_server_gets_its_owner_who_signs_out_and_in(visit: Visit, tmp_path: Path) -> None:
    with ConsoleSite.running(tmp_path, "new") as new:
        code, password = new.run(new.first_code()), "correct horse battery"
        page = visit().open(f"{new.url}/console/")
        page.get_by_role("textbox", name="One-time code").fill(code)
        page.get_by_role("textbox", name="Name").fill("ling")
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Begin").click()
        expect(page.get_by_role("heading", name="Getting started", level=1)).to_be_visible()
        go(page, "#/accounts")
        expect(page.get_by_role("combobox", name="Role of ling")).to_have_value("owner")
        page.reload()
        page.get_by_role("button", name="Sign out").click()
        sign_in_with_account(page, "ling", password)
        expect(page.get_by_role("heading", name="Accounts", level=1)).to_be_visible()
        page.goto("about:blank")
