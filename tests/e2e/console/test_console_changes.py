"""Changes that give devices another agent, or another version of theirs: asked first, with the count, in Chromium."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from sqlalchemy import insert

from fleet.adapters.sealing import new_key
from fleet.adapters.sql import database
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import ASSIGNMENT
from tests.support.browser import Visitor, forget
from tests.support.console_page import go, lasting_messages, press, sign_in
from tests.support.console_places import LOCALES, Language, catalogue
from tests.support.console_site import ConsoleSite

MANY = [f"02:ee:00:00:{number // 256:02x}:{number % 256:02x}" for number in range(101)]


@pytest.fixture(scope="module", params=["en", pytest.param("zh", marks=pytest.mark.slow)])
def language(request: pytest.FixtureRequest) -> Language:
    found: Language = request.param
    return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path, secret_keys=new_key()) as running:
        yield running


@pytest.fixture(scope="module")
def desk(browser: Browser, language: Language) -> Iterator[tuple[Visitor, Page]]:
    """One window for all tests: each has a site of its own, of which nothing is kept for the next."""
    visitor = Visitor(browser, viewport={"width": 1440, "height": 900}, locale=LOCALES[language])
    yield visitor, visitor.open("about:blank")
    visitor.leave()


@pytest.fixture
def visitor(desk: tuple[Visitor, Page]) -> Iterator[Visitor]:
    visitor, page = desk
    yield visitor
    forget(page)
    visitor.complaints.clear()


@pytest.fixture
def tab(desk: tuple[Visitor, Page], visitor: Visitor) -> Page:
    """The page, which shows nothing yet."""
    return desk[1]


@pytest.fixture
def page(site: ConsoleSite, tab: Page) -> Page:
    """A page of the site, which forgets it before the site ends."""
    return enter(tab, site)


def enter(page: Page, site: ConsoleSite) -> Page:
    page.goto(f"{site.url}/console/")
    return sign_in(page)


class Words:
    """What the console shows in a language."""

    def __init__(self, language: Language) -> None:
        self._texts = catalogue(language)

    def __call__(self, key: str, **values: str) -> str:
        text = self._texts[key]
        for name, value in values.items():
            text = text.replace("{" + name + "}", value)
        return text

    def press(self, where: Page | Locator, key: str, **values: str) -> None:
        press(where.get_by_role("button", name=self(key, **values), exact=True).first)


@pytest.fixture
def words(language: Language) -> Words:
    return Words(language)


async def give_to_many(site: ConsoleSite, agent: int) -> None:
    """Give an agent to 101 devices, one by one."""
    await DeviceRows(site.stage.database, 1).add([NewDevice(mac) for mac in MANY])
    row = {"tenant": 1, "scope": "device", "agent": agent, "rank": 0}
    async with site.stage.database.writing() as connection:
        await connection.execute(insert(ASSIGNMENT), [{**row, "ref": mac_number(mac)} for mac in MANY])
    await site.ask("POST /v1/agents:compile")


def read(site: ConsoleSite, path: str) -> Any:
    return site.run(site.ask(f"GET /v1{path}"))


def test_a_version_counts_after_the_number_of_its_devices_was_typed(
    page: Page, site: ConsoleSite, words: Words, visitor: Visitor
) -> None:
    site.run(give_to_many(site, 1))
    [further] = read(site, "/devices?filter=tag.site%3Dlyon&limit=1")["items"]
    site.run(site.ask(f"PATCH /v1/devices/{further['mac']}", json={"tags": {"site": "berlin"}}))
    counts = site.run(site.ask("POST /v1/agents/1:preview", json={}))
    number = counts["changing"]
    assert number > 101 and counts["late"] == 1
    dialog = page.get_by_role("dialog")
    go(page, "#/agents/1")
    words.press(page, "agents.publish")
    expect(dialog.locator(".stat")).to_contain_text(str(number))
    given = dialog.locator(".row", has_text=words("skip.it-has-the-agent-itself"))
    expect(given).to_contain_text("101")
    expect(dialog.locator(".row", has_text=words("agents.late"))).to_contain_text(str(counts["late"]))
    listed = f"#/devices?{urlencode({'filter': counts['query']})}"
    expect(dialog.locator("a.stat")).to_have_attribute("href", listed)
    button = dialog.get_by_role("button", name=words("agents.publish"), exact=True)
    expect(button).to_be_disabled()
    dialog.get_by_role("textbox").fill(str(number))
    with lasting_messages(page):
        press(button)
        expect(dialog).to_have_count(0)
        assert read(site, "/agents/1")["live"] == 3
        words.press(page, "undo")
        expect(page.get_by_text(words("agents.version", number="2")).first).to_be_visible()
    go(page, "#/agents/1/versions")
    newest = page.locator("section", has_text=words("agents.version", number="3"))
    words.press(newest.last, "agents.rollback")
    expect(dialog.locator(".stat")).to_contain_text(str(number))
    dialog.get_by_role("textbox").fill(str(number))
    site.run(site.ask("POST /v1/agents/1:assign", json={"site": True, "most": 10_000}))
    words.press(dialog, "agents.rollback")
    expect(dialog.get_by_text(words("problem.more-devices"))).to_be_visible()
    assert read(site, "/agents/1")["live"] == 2
    assert [one for one in visitor.complaints if "409" not in one] == []
    visitor.complaints.clear()
    dialog.locator("a.stat").press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name=words("page.devices"), level=1)).to_be_visible()
    assert visitor.complaints == []


def test_before_an_agent_is_deleted_it_is_said_what_its_devices_get(
    page: Page, site: ConsoleSite, words: Words, visitor: Visitor
) -> None:
    teacher = 2
    site.run(site.ask(f"POST /v1/agents/{teacher}:publish"))
    site.run(site.ask(f"POST /v1/agents/{teacher}:assign", json={"device": site.macs[0]}))
    site.run(site.ask(f"POST /v1/agents/{teacher}:assign", json={"site": True}))
    counts = site.run(site.ask("POST /v1/agents/1:preview", json={"deleted": True}))
    assert [one["agent"] for one in counts["instead"]] == ["teacher"]
    go(page, "#/agents/1")
    words.press(page, "delete")
    dialog = page.get_by_role("dialog")
    row = dialog.locator(".row", has_text=words("agents.instead", name="teacher"))
    expect(row).to_contain_text(str(counts["changing"]))
    expect(dialog.locator(".row", has_text=words("skip.one-of-its-groups-has-the-agent"))).to_be_visible()
    button = dialog.get_by_role("button", name=words("delete"), exact=True)
    expect(button).to_be_disabled()
    dialog.get_by_role("textbox").fill("concierge")
    press(button)
    expect(dialog).to_have_count(0)
    assert [one["name"] for one in read(site, "/agents")["items"]] == ["teacher"]
    go(page, f"#/agents/{teacher}")
    words.press(page, "delete")
    expect(dialog.locator(".row", has_text=words("agents.instead", name=words("agents.by-settings")))).to_be_visible()
    assert visitor.complaints == []


def test_members_of_a_group_with_an_agent_change_after_a_dry_run(
    page: Page, site: ConsoleSite, words: Words, visitor: Visitor
) -> None:
    site.run(site.ask("POST /v1/agents/1:assign", json={"group": 2, "rank": 5}))
    dialog = page.get_by_role("dialog")
    new = [site.macs[10], site.macs[11]]
    go(page, "#/groups/2")
    field = page.get_by_role("textbox", name=words("groups.add-macs"), exact=True)
    field.fill(" ".join(new))
    field.press("Enter")
    counts = site.run(site.ask("POST /v1/groups/2:preview", json={"add": new}))
    assert counts["changing"] in (1, 2)
    expect(dialog.locator(".stat")).to_contain_text(str(counts["changing"]))
    words.press(dialog, "cancel")
    expect(dialog).to_have_count(0)
    expect(field).to_have_value(" ".join(new))
    assert len(read(site, "/groups/2/members")["items"]) == 6
    field.press("Enter")
    with lasting_messages(page):
        words.press(dialog, "save")
        expect(dialog).to_have_count(0)
        expect(field).to_have_value("")
        assert len(read(site, "/groups/2/members")["items"]) == 8
        # What was added is shown before it is taken back: else nothing tells that it went.
        added = page.locator("table").get_by_text(new[0])
        expect(added).to_be_visible()
        words.press(page, "undo")
        expect(added).to_have_count(0)
    assert len(read(site, "/groups/2/members")["items"]) == 6
    assert visitor.complaints == []


def test_the_query_and_the_end_of_a_group_with_an_agent_count_after_a_dry_run(
    page: Page, site: ConsoleSite, words: Words, visitor: Visitor
) -> None:
    site.run(site.ask("POST /v1/agents/1:assign", json={"group": 2, "rank": 5}))
    dialog = page.get_by_role("dialog")
    # Who leaves the group and who joins it.
    go(page, "#/groups/1")
    field = page.get_by_label(words("groups.query"), exact=True)
    field.fill("tag.site=none")
    field.press("Enter")
    counts = site.run(site.ask("POST /v1/groups/1:preview", json={"query": "tag.site=none"}))
    expect(dialog.locator(".stat")).to_contain_text(str(counts["changing"]))
    words.press(dialog, "cancel")
    expect(dialog).to_have_count(0)
    assert read(site, "/groups/1")["query"] == "tag.site=berlin"
    field.press("Enter")
    words.press(dialog, "save")
    expect(dialog).to_have_count(0)
    assert read(site, "/groups/1")["query"] == "tag.site=none"
    # The whole group.
    go(page, "#/groups/2")
    words.press(page, "delete")
    expect(dialog.locator(".stat")).to_contain_text("6")
    words.press(dialog, "delete")
    expect(dialog).to_have_count(0)
    assert [one["id"] for one in read(site, "/groups")["items"]] == [1]
    assert visitor.complaints == []


def test_a_group_of_many_that_a_query_names_is_renamed_after_their_number_was_typed(
    page: Page, site: ConsoleSite, words: Words, visitor: Visitor
) -> None:
    site.run(DeviceRows(site.stage.database, 1).add([NewDevice(mac) for mac in MANY]))
    site.run(site.ask("POST /v1/groups/2/members:add", json={"macs": MANY}))
    number = len(MANY) + 6
    dialog = page.get_by_role("dialog")

    def save(name: str) -> None:
        words.press(page, "edit")
        dialog.get_by_label(words("query.name"), exact=True).fill(name)
        words.press(dialog, "save")

    go(page, "#/groups/2")
    save("Pilots")
    expect(page.get_by_role("heading", name="Pilots", level=1)).to_be_visible()
    expect(dialog).to_have_count(0)
    site.run(site.ask("PATCH /v1/groups/1", json={"query": "online NOT group=Pilots"}))
    site.run(site.ask("POST /v1/agents/1:assign", json={"group": 1, "most": 10_000}))
    save("Berlin")
    asked = page.get_by_role("dialog", name="Pilots")
    expect(asked.locator(".stat")).to_contain_text(str(number))
    button = asked.get_by_role("button", name=words("save"), exact=True)
    expect(button).to_be_disabled()
    asked.get_by_role("textbox").fill(str(number))
    press(button)
    # The name is that of another group. What was typed is still there.
    expect(asked.get_by_text(words("problem.name-taken"))).to_be_visible()
    words.press(asked, "cancel")
    expect(asked).to_have_count(0)
    dialog.get_by_label(words("query.name"), exact=True).fill("Test pilots")
    words.press(dialog, "save")
    asked.get_by_role("textbox").fill(str(number))
    press(button)
    expect(page.get_by_role("heading", name="Test pilots", level=1)).to_be_visible()
    expect(dialog).to_have_count(0)
    found = read(site, "/groups/2")
    assert (found["name"], found["notes"]) == ("Test pilots", "First to get changes")
    assert [one for one in visitor.complaints if "409" not in one] == []
    visitor.complaints.clear()


def test_a_group_without_an_agent_changes_at_once(page: Page, site: ConsoleSite, words: Words) -> None:
    go(page, "#/groups/2")
    field = page.get_by_role("textbox", name=words("groups.add-macs"), exact=True)
    field.fill(site.macs[10])
    field.press("Enter")
    expect(page.get_by_text(site.macs[10])).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    words.press(page, "delete")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(words("groups.delete-about"))).to_be_visible()
    expect(dialog.get_by_role("button", name=words("delete"), exact=True)).to_be_enabled()
    expect(dialog.locator(".stat")).to_have_count(0)


def test_what_was_not_counted_is_said_and_the_most_that_it_can_be_is_named(
    site: ConsoleSite, tab: Page, words: Words, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOOK_SECONDS", 0.0)
    found = site.run(site.ask("POST /v1/assignments:preview", json={"agent": 2, "site": True}))
    assert (found["counted"], found["changing"]) == (False, len(site.macs))
    monkeypatch.undo()
    page = enter(tab, site)
    page.route("**/v1/assignments:preview", lambda route: route.fulfill(json=found))
    go(page, "#/agents/2/assignments")
    words.press(page, "assign")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(words("agents.uncounted"))).to_be_visible()
    expect(dialog.locator(".stat")).to_contain_text(str(len(site.macs)))
    words.press(dialog, "assign")
    expect(dialog).to_have_count(0)
    assert [one["agent"] for one in read(site, "/assignments")["items"] if one["site"]] == [2]
    assert visitor.complaints == []


def answered(route: Route) -> None:
    """Answer a trial in place of a chat model."""
    route.fulfill(json={"text": "I am Xiaozhi.", "seconds": 0.2, "input_tokens": 9, "output_tokens": 4})


def test_models_for_all_devices_of_a_house_of_many_are_used_after_their_number_was_typed(
    tab: Page, tmp_path: Path, words: Words
) -> None:
    with ConsoleSite.running(tmp_path, "empty", secret_keys=new_key()) as site:
        site.run(DeviceRows(site.stage.database, 1).add([NewDevice(mac) for mac in MANY]))
        provider = {"name": "house", "kind": "chat", "base_url": "http://127.0.0.1:9/v1", "model": "m"}
        site.run(site.ask("POST /v1/providers", json=provider))
        page = enter(tab, site)
        page.route("**/v1/agents/*:try", answered)
        dialog = page.get_by_role("dialog")
        go(page, "#/start/models")
        words.press(page, "start.use-models")
        expect(dialog.locator("a.stat")).to_contain_text("101")
        assert read(site, "/assignments")["items"] == []
        with page.expect_response(lambda answer: answer.request.method == "PATCH"):
            words.press(dialog, "cancel")
        expect(dialog).to_have_count(0)
        [agent] = read(site, "/agents")["items"]
        assert (agent["live"], agent["draft"]["chat"]["provider"]) == (0, None), "a later step publishes the draft"
        words.press(page, "start.use-models")
        dialog.get_by_role("textbox").fill("101")
        words.press(dialog, "agents.publish")
        expect(dialog).to_have_count(0)
        [given] = read(site, "/assignments")["items"]
        agent = read(site, f"/agents/{given['agent']}")
        assert (given["site"], agent["live"], agent["draft"]["chat"]["provider"]) == (True, 1, "house")
        # The agent of the site has 101 devices now, which hear each change of it.
        go(page, "#/start/language")
        words.press(page, "save")
        expect(dialog.locator("a.stat")).to_contain_text("101")
        dialog.get_by_role("textbox").fill("101")
        words.press(dialog, "agents.publish")
        expect(dialog).to_have_count(0)
        assert read(site, f"/agents/{given['agent']}")["live"] == 2
        forget(page)
