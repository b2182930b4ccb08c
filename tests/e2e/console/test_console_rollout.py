"""Firmware and jobs in the console in a real Chromium: upload, rollout, way back, a canary, a later start."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fleet.adapters.redis.devices.tools import pack_tools
from tests.support.browser import Visitor
from tests.support.console_page import follow_events, go, lasting_messages, signed_in
from tests.support.console_site import HOSTILE, TOOLS, ConsoleSite
from tests.support.job_site import JobSite
from tests.support.offered_firmware import image_of

BOARD = "esp-box-3"
"""A board of the made-up fleet."""
KIND = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture(scope="module")
def desk(browser: Browser, site: ConsoleSite) -> Iterator[tuple[Visitor, Page]]:
    with signed_in(browser, site.url, viewport={"width": 390, "height": 844}, timezone_id="Asia/Shanghai") as desk:
        yield desk


@pytest.fixture
def page(desk: tuple[Visitor, Page]) -> Iterator[Page]:
    visitor, page = desk
    go(page, "#/system")
    expect(page.get_by_role("heading", name="System", level=1)).to_be_visible()
    follow_events(page)
    yield page
    # Chromium itself notes each answer that refuses something.
    assert [text for text in visitor.complaints if "status of 4" not in text] == []
    visitor.complaints.clear()


def upload(site: ConsoleSite, version: str, board: str = BOARD) -> int:
    path = f"POST /v1/firmware?board={board}&version={version}"
    made = site.run(site.ask(path, content=image_of(version), headers=KIND))
    return int(made["id"])


def choose(page: Page, content: bytes) -> None:
    page.get_by_label("File").set_input_files({"name": "a.bin", "mimeType": KIND["Content-Type"], "buffer": content})


def job_of(page: Page, site: ConsoleSite) -> dict[str, Any]:
    """Return the job whose page is shown."""
    expect(page).to_have_url(re.compile(r"#/jobs/\d+$"))
    number = page.url.rpartition("/")[2]
    found: dict[str, Any] = site.run(site.ask(f"GET /v1/jobs/{number}"))
    return found


def test_an_image_is_uploaded_rolled_out_and_taken_back(page: Page, site: ConsoleSite) -> None:
    upload(site, "2.4.2")
    go(page, "#/firmware")
    page.get_by_role("button", name="Upload an image").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Board").fill(BOARD)
    choose(page, b"no firmware" * 1000)
    dialog.get_by_role("button", name="Upload an image").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Devices could not use this file.")
    expect(dialog.get_by_role("alert")).to_contain_text("no ESP32 application")
    choose(page, image_of("2.5.1", 4_000_000))
    dialog.get_by_role("button", name="Upload an image").click()
    row = page.get_by_role("row").filter(has_text="2.5.1")
    expect(row).to_be_visible()
    expect(dialog).to_have_count(0)

    row.get_by_role("link", name="Roll out").click()
    expect(page.get_by_role("combobox", name="Image")).to_have_value(re.compile(r"^\d+$"))
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("combobox", name="Query")).to_have_value(f"board={BOARD}")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text(re.compile(r"^\d+ online now$"))).to_be_visible()
    page.get_by_label("First devices").fill("3")
    page.get_by_role("button", name="Begin", exact=True).click()
    devices = site.run(site.ask(f"GET /v1/devices:counts?by=board&filter=board={BOARD}"))["items"][0]["values"][BOARD]
    page.get_by_role("dialog").get_by_role("textbox").fill(str(devices))
    page.get_by_role("dialog").get_by_role("button", name="Begin").click()
    made = job_of(page, site)
    assert (made["kind"], made["firmware"]["how"], made["policy"]["stages"][0]["count"]) == ("firmware", "reboot", 3)
    assert made["policy"]["halt_sample"] == 3, "a canary of three halts after three"

    page.get_by_role("button", name="Back to 2.4.2").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("This job stops.")).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"devices? gets? it now"))).to_be_visible()
    dialog.get_by_role("button", name="Back to 2.4.2").click()
    expect(page.get_by_role("heading", name="back to 2.4.2", level=1)).to_be_visible()
    back = job_of(page, site)
    assert back["firmware"]["force"] is True and back["query"] == f"board={BOARD} AND firmware>2.4.2"
    assert site.run(site.ask(f"GET /v1/jobs/{made['id']}"))["state"] == "stopping"


@pytest.mark.slow
def test_a_rollout_says_why_it_skips_devices(page: Page, site: ConsoleSite) -> None:
    image = upload(site, "2.4.2", "lichuang-dev")
    go(page, f"#/jobs?make=1&kind=firmware&image={image}&query=online%20OR%20online%3Dfalse")
    for reason in ("Another board", "It runs this version already", "It runs a newer version"):
        expect(page.get_by_text(reason)).to_be_visible()
    page.get_by_role("checkbox", name="Also where a newer version runs").check()
    expect(page.get_by_text("It runs a newer version")).to_have_count(0)


@pytest.mark.slow
def test_downloads_name_device_and_job_and_an_unused_image_is_deleted(page: Page, site: ConsoleSite) -> None:
    upload(site, "2.6.0", "own-board")
    go(page, "#/firmware")
    site.run(site.let("firmware.taken", site.macs[7], offer="2-1"))
    expect(page.get_by_role("link", name=site.macs[7])).to_be_visible()
    page.get_by_role("link", name="job 2", exact=True).click()
    expect(page.get_by_role("heading", name="Restart Berlin", level=1)).to_be_visible()
    go(page, "#/firmware")
    page.get_by_role("button", name="Delete 2.6.0 of own-board").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("own-board")).to_have_count(0)


def test_the_volume_of_a_group_is_set_by_a_canary_that_halts(page: Page, site: ConsoleSite) -> None:
    store = site.stage.services.store
    for mac in site.macs:
        site.run(store.ask(store.client.set(store.keys.tools(mac), site.run(pack_tools(TOOLS)))))
    go(page, "#/groups/1")
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_visible()
    page.get_by_role("link", name="Make a job").click()
    page.get_by_role("combobox", name="Tool").select_option("self.audio_speaker.set_volume")
    expect(page.get_by_label("Exact value")).to_have_value("")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_label("Exact value").fill("40")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    online = site.run(site.ask("GET /v1/devices:counts?by=online&filter=tag.site=berlin"))["items"][0]["values"]
    expect(page.get_by_label("First devices")).to_have_value(str(min(20, sum(online.values()) // 2)))
    page.get_by_label("Stages").select_option("careful")
    expect(page.get_by_label("First devices")).to_have_value("5")
    page.get_by_label("Stages").select_option("usual")
    page.get_by_label("First devices").fill("4")
    page.get_by_label("Devices a second").fill("1000")
    page.get_by_role("button", name="Begin", exact=True).click()
    made = job_of(page, site)
    assert (made["arguments"], made["query"]) == ({"volume": 40}, "tag.site=berlin")
    expect(page.get_by_text("Preparing", exact=True).first).to_be_visible()
    leader = JobSite(site.stage.database, site.stage.services.store)
    site.run(leader.lead())
    site.run(leader.prepare())
    site.run(leader.run(made["id"], lambda _: ("error", HOSTILE)))
    site.run(site.let("job.halted", job=made["id"]))
    expect(page.get_by_text("It halted by itself:")).to_be_visible()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    expect(page.get_by_text(HOSTILE).first).to_be_attached()
    assert "owned" not in page.title()

    # No event tells of single devices.
    with lasting_messages(page):
        page.get_by_role("button", name="Retry failures").click()
        expect(page.get_by_text("Failures are tried again once you continue the job")).to_be_visible()
    site.run(leader.step())
    expect(page.get_by_role("button", name=re.compile("^Waiting"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Error"))).to_have_count(0)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_a_query_that_was_typed_counts_without_a_press_on_find(page: Page, site: ConsoleSite) -> None:
    def counted(query: str) -> int:
        return int(site.run(site.ask("POST /v1/jobs:preview", json={**asked, "query": query}))["devices"])

    asked = {"name": "x", "kind": "collect", "policy": {"stages": [{"share": 1}]}}
    go(page, "#/jobs?make=1&kind=collect")
    page.get_by_role("button", name="Next").click()
    field = page.get_by_role("combobox", name="Query")
    field.fill("board=")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("alert")).to_contain_text("query")
    expect(page.get_by_role("button", name="Begin", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Back").click()
    expect(field).to_have_value("board=")
    field.fill("tag.site=lyon")
    page.get_by_role("button", name="Next").click()
    stat = page.locator(".stat")
    assert counted("tag.site=lyon") < counted("")
    expect(stat).to_contain_text(str(counted("tag.site=lyon")))
    page.get_by_role("button", name="Begin", exact=True).click()
    assert job_of(page, site)["query"] == "tag.site=lyon"
    # So it is with an announcement, which would be told to all.
    go(page, "#/announcements")
    expect(stat).to_contain_text(str(counted("")))
    page.get_by_role("combobox").first.fill("tag.site=berlin")
    page.get_by_label("Text").fill("Dinner is ready.")
    expect(stat).to_contain_text(str(counted("tag.site=berlin")))
    page.get_by_role("button", name="Announce").click()
    assert job_of(page, site)["query"] == "tag.site=berlin"


@pytest.mark.slow
def test_tools_of_devices_that_have_just_come_are_found_while_one_waits(page: Page, site: ConsoleSite) -> None:
    store, mac = site.stage.services.store, site.macs[9]
    site.run(store.ask(store.client.delete(store.keys.tools(mac))))
    go(page, f"#/jobs?make=1&query=mac%3D{mac}")
    expect(page.get_by_role("option", name="self.reboot")).to_be_attached()
    site.run(store.ask(store.client.set(store.keys.tools(mac), site.run(pack_tools(TOOLS)))))
    expect(page.get_by_role("option", name="self.audio_speaker.set_volume")).to_be_attached()


@pytest.mark.slow
def test_a_job_is_planned_for_later_in_the_viewers_zone(page: Page, site: ConsoleSite) -> None:
    go(page, "#/jobs?make=1&kind=collect&query=online")
    for _ in range(2):
        page.get_by_role("button", name="Next").click()
    page.get_by_text("Later, hours and replacement").click()
    expect(page.get_by_text("Asia/Shanghai")).to_be_visible()
    begins = datetime.now(UTC).replace(hour=2, minute=30, second=0, microsecond=0) + timedelta(days=3)
    page.get_by_label("Begins").fill(begins.strftime("%Y-%m-%dT%H:%M"))
    page.get_by_label("Good for").select_option("A day")
    page.get_by_label("In place of others").fill("nightly")
    page.get_by_label("Quiet hours").fill("22:00-07:00")
    page.get_by_role("button", name="Plan it").click()
    expect(page.get_by_text("Begins later").first).to_be_visible()
    made = job_of(page, site)
    assert datetime.fromisoformat(made["starts"]) == begins - timedelta(hours=8)
    assert (made["supersedes"], made["policy"]["expires_seconds"]) == ("nightly", 86_400)
    assert made["policy"]["quiet"] == "22:00-07:00"
    expect(page.get_by_text("nightly")).to_be_visible()
