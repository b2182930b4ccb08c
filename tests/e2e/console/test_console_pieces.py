"""Check-up and commands of a device, the processes of the site, redaction, and links of the overview, in Chromium."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from fleet.adapters.redis.devices.tools import pack_tools
from fleet.adapters.redis.shards.processes import Processes, ProcessRecord
from tests.support.browser import Visitor
from tests.support.console_page import go, lasting_messages, press, signed_in
from tests.support.console_site import HOSTILE, TOOLS, ConsoleSite

OWNED = "() => document.title === 'owned' || document.querySelector('main script, main img[src=x]') !== null"
BROKER = "broker.example:1883"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleSite]:
    with ConsoleSite.running(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture(scope="module")
def desk(browser: Browser, site: ConsoleSite) -> Iterator[tuple[Visitor, Page]]:
    with signed_in(browser, site.url, viewport={"width": 1440, "height": 900}) as desk:
        yield desk


@pytest.fixture
def page(desk: tuple[Visitor, Page]) -> Iterator[Page]:
    visitor, page = desk
    go(page, "#/")
    expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    yield page
    assert not page.evaluate(OWNED), "a text of a device became a part of the page"
    assert visitor.complaints == []


def offline_device(site: ConsoleSite) -> str:
    """Return a device that is away and whose tools are known."""
    mac = str(site.run(site.ask("GET /v1/devices?filter=online=false state=bound&limit=1"))["items"][0]["mac"])
    store = site.stage.services.store
    site.run(store.ask(store.client.set(store.keys.tools(mac), site.run(pack_tools(TOOLS)))))
    return mac


def test_the_check_up_says_why_a_device_is_silent_and_what_to_do(page: Page, site: ConsoleSite) -> None:
    mac, store = offline_device(site), site.stage.services.store
    keys, now = store.keys, int(datetime.now(UTC).timestamp())
    site.run(store.ask(store.client.zadd(keys.seen(keys.shard(mac)), {mac: now})))
    record = {"host": HOSTILE, "board": HOSTILE, "fw": "2.5.0", "ep": "1", "on": "0"}
    site.run(store.ask(store.client.hset(keys.device(mac), mapping=record)))
    go(page, f"#/devices/{mac}")
    page.get_by_role("link", name="Check-up").press("Enter")
    expect(page.get_by_text("The first problem is the reason")).to_be_visible()
    items = page.get_by_role("main").get_by_role("listitem")
    found = items.filter(has_text="It is not connected")
    expect(found).to_contain_text("Problem")
    expect(found).to_contain_text("look at its screen")
    expect(items.filter(has_text="It asked for its configuration")).to_contain_text(HOSTILE)
    site.run(store.ask(store.client.hset(keys.device(mac), "on", "1")))
    page.get_by_role("button", name="Try again").click()
    expect(items.filter(has_text="It is connected")).to_contain_text("Fine")


def test_a_command_waits_for_its_device_and_is_given_up(page: Page, site: ConsoleSite) -> None:
    mac = offline_device(site)
    go(page, f"#/devices/{mac}/commands")
    expect(page.get_by_text("No command waits or was sent")).to_be_visible()
    go(page, f"#/devices/{mac}/tools")
    tool = page.locator("details.tool").filter(has_text="set_volume")
    tool.locator("summary").press("Enter")
    tool.get_by_label("Exact value").fill("40")
    with lasting_messages(page):
        press(tool.get_by_role("button", name="Send when it is there"))
        expect(page.get_by_text("It is sent when the device is there.")).to_be_visible()
    page.get_by_role("link", name="Commands").click()
    row = page.get_by_role("row").filter(has_text="set_volume")
    expect(row).to_contain_text('{"volume":40}')
    expect(row).to_contain_text("Queued")
    press(row.get_by_role("button", name=re.compile("^Cancel self.audio_speaker.set_volume, command")))
    expect(row).to_contain_text("Cancelled")
    expect(row.get_by_role("button")).to_have_count(0)
    (command,) = site.run(site.ask(f"GET /v1/devices/{mac}/commands"))["items"]
    assert (command["state"], command["arguments"]) == ("cancelled", {"volume": 40})


def test_the_system_page_shows_processes_brokers_and_what_waits(page: Page, site: ConsoleSite) -> None:
    store, processes = site.stage.services.store, Processes(site.stage.services.store)
    began = int(datetime.now(UTC).timestamp() * 1000) - 3_600_000
    version = site.run(site.ask("GET /v1/system"))["version"]
    records = [
        ProcessRecord("host-a", "edge", version, began, "", BROKER, connected=True),
        ProcessRecord("host-b", "worker", "0.0.1", began, HOSTILE, BROKER),
    ]
    try:
        for record in records:
            site.run(processes.announce(record))
        site.run(store.ask(store.client.xadd(store.keys.inbox(5), {"m": "{}"})))
        go(page, "#/system")
        table = page.get_by_role("region", name="Processes")
        expect(table.get_by_role("row").filter(has_text="host-a")).to_contain_text("Serving")
        away = table.get_by_role("row").filter(has_text="host-b")
        expect(away).to_contain_text("0.0.1")
        expect(away).to_contain_text("Not ready")
        expect(away).to_contain_text(HOSTILE)
        expect(page.get_by_text("another version than this console. During")).to_be_visible()
        brokers = page.get_by_role("region", name="Brokers")
        expect(brokers.get_by_role("row").filter(has_text=BROKER)).to_contain_text("1 not connected")
        waits = page.get_by_role("region", name="What waits").get_by_role("row")
        expect(waits.filter(has_text=re.compile(r"^5"))).to_be_visible()
        go(page, "#/")
        page.get_by_role("link", name=re.compile("^Brokers 1 not connected")).click()
        expect(page.get_by_role("heading", name="System", level=1)).to_be_visible()
    finally:
        for record in records:
            site.run(processes.retire(record.id))
        site.run(store.ask(store.client.delete(store.keys.inbox(5))))
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("No process has reported")).to_be_visible()
    expect(page.get_by_text("Nothing waits")).to_be_visible()


def test_a_line_of_a_conversation_is_redacted_for_good(page: Page, site: ConsoleSite) -> None:
    mac, said = site.macs[30], f"My PIN is 4711 {HOSTILE}"
    turn = {"turn": "pin", "session": "pin", "user": said, "answer": "I keep 4711 to myself."}
    site.run(site.let("turn.answered", mac, **turn))
    number = site.run(site.ask(f"GET /v1/conversations?device={mac}"))["items"][0]["id"]
    go(page, f"#/conversations/{number}")
    expect(page.get_by_text(said)).to_be_visible()
    opener = page.get_by_role("button", name=re.compile("^Redact the turn of"))
    press(opener)
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("checkbox", name="What was answered").uncheck()
    dialog.get_by_role("button", name="Redact").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("My PIN is")).to_have_count(0)
    expect(page.get_by_text("redacted", exact=True)).to_be_visible()
    expect(page.get_by_text("I keep 4711 to myself.")).to_be_visible()
    press(opener)
    expect(dialog.get_by_role("checkbox")).to_have_count(1)
    dialog.get_by_role("button", name="Redact").click()
    expect(opener).to_have_count(0)
    (kept,) = site.run(site.ask(f"GET /v1/conversations/{number}"))["turns"]
    assert (kept["question"], kept["answer"], kept["redacted"]) == ("", "", ["question", "answer"])


def test_a_number_stays_as_it_is_typed_when_its_field_is_drawn_again(page: Page) -> None:
    go(page, "#/agents/1")
    field = page.get_by_role("spinbutton", name="Temperature")
    field.press_sequentially("-0.")
    # What is drawn again at the end of these keys is the whole form.
    page.get_by_role("textbox", name="Greeting").fill("Hi")
    field.press("End")
    field.press_sequentially("5")
    expect(field).to_have_value("-0.5")


def test_the_next_question_can_be_written_before_the_answer_comes(page: Page) -> None:
    held: list[Route] = []
    page.route("**/v1/agents/1:try", lambda route: held.append(route))
    go(page, "#/agents/1/try")
    field = page.get_by_role("textbox", name="Your text")
    field.fill("Who are you?")
    with page.expect_request("**/v1/agents/1:try"):
        page.get_by_role("button", name="Send").click()
    field.fill("And how old")
    held[0].fulfill(json={"text": "Xiaozhi.", "seconds": 0.2, "input_tokens": 9, "output_tokens": 4})
    expect(page.get_by_role("log").get_by_text("Xiaozhi.")).to_be_visible()
    expect(field).to_have_value("And how old")
    page.unroute_all()


def test_a_voice_that_is_none_of_the_known_ones_is_marked(page: Page) -> None:
    go(page, "#/agents/1")
    voice = page.get_by_role("combobox", name="Voice", exact=True)
    voice.fill("zf_typo")
    expect(page.get_by_text("None of these. If the server has no such voice")).to_be_visible()
    # The edge of the site tells its voices, also those in its own folder.
    voice.fill("zf_own")
    expect(page.get_by_text("None of these. If the server has no such voice")).to_have_count(0)
    expect(page.get_by_text("Such as zf_own, zf_xiaoxiao, zm_yunxi")).to_be_visible()


def test_an_agent_for_many_devices_has_a_dry_run_first_and_a_job_is_offered(page: Page, site: ConsoleSite) -> None:
    before = site.run(site.ask("GET /v1/assignments"))["items"]
    counts = site.run(site.ask("POST /v1/assignments:preview", json={"agent": 1, "site": True}))
    (kept,) = counts["skipped"]
    assert counts["changing"] > 0 and kept["reason"] == "one of its groups has an agent"
    go(page, "#/agents/1/assignments")
    press(page.get_by_role("button", name="Assign"))
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".stat")).to_contain_text(str(counts["changing"]))
    reason = dialog.locator(".row", has_text="One of its groups has an agent")
    expect(reason).to_contain_text(f"{kept['devices']} skipped")
    assert site.run(site.ask("GET /v1/assignments"))["items"] == before
    dialog.get_by_role("link", name="Give it to a few devices first, by a job").click()
    expect(page.get_by_role("heading", name="New job", level=1)).to_be_visible()
    go(page, "#/agents/1/assignments")
    press(page.get_by_role("button", name="Assign"))
    press(dialog.get_by_role("button", name="Assign"))
    expect(dialog).to_have_count(0)
    given = page.get_by_role("listitem").filter(has_text="The whole site")
    expect(given).to_be_visible()
    press(given.get_by_role("button", name="Take it away"))
    expect(dialog.locator(".stat")).to_contain_text(str(counts["changing"]))
    assert len(site.run(site.ask("GET /v1/assignments"))["items"]) == len(before) + 1
    with lasting_messages(page):
        press(dialog.get_by_role("button", name="Take it away"))
        expect(given).to_have_count(0)
        assert site.run(site.ask("GET /v1/assignments"))["items"] == before
        press(page.get_by_role("button", name="Undo"))
        expect(given).to_be_visible()


def test_an_agent_reaches_no_more_devices_than_the_dry_run_has_shown(
    desk: tuple[Visitor, Page], page: Page, site: ConsoleSite
) -> None:
    site.run(site.ask("POST /v1/assignments:remove", json={"site": True}))
    go(page, "#/agents/1/assignments")
    press(page.get_by_role("button", name="Assign"))
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".stat")).to_be_visible()
    site.run(site.ask("POST /v1/devices", json={"mac": "02:ff:00:00:00:01"}))
    press(dialog.get_by_role("button", name="Assign"))
    expect(dialog.get_by_text("This concerns more devices than was said")).to_be_visible()
    assert not [one for one in site.run(site.ask("GET /v1/assignments"))["items"] if one["site"]]
    assert [one for one in desk[0].complaints if "409" not in one] == []
    desk[0].complaints.clear()
    press(dialog.get_by_role("button", name="Cancel"))


def test_an_announcement_shows_who_would_be_told_and_how_before_its_button_works(page: Page, site: ConsoleSite) -> None:
    counts = {"text": "Hi", "query": "", "ways": ["notify"]}
    go(page, "#/announcements")
    page.get_by_label("Text", exact=True).fill("Hi")
    for name in ("Spoken, in a conversation", "Shown on the screen"):
        page.get_by_role("checkbox", name=name).uncheck()
    found = site.run(site.ask("POST /v1/announcements:preview", json=counts))
    told, lacking = found["ways"][0]["devices"], found["skipped"][0]
    assert lacking["reason"] == "it has none of these ways" and told > 0
    panel = page.locator("section", has=page.get_by_role("heading", name="Dry run"))
    expect(panel.locator(".row", has_text="Played while idle")).to_contain_text(str(told))
    expect(panel.locator(".row", has_text="It has none of these ways")).to_contain_text(f"{lacking['devices']} skipped")
    expect(panel.locator(".row", has_text="It is offline")).to_contain_text("later")
    go_on = page.get_by_role("button", name="Announce")
    expect(go_on).to_be_enabled()
    page.get_by_role("checkbox", name="Played while idle").uncheck()
    expect(go_on).to_be_disabled()
    assert not [one for one in site.run(site.ask("GET /v1/jobs"))["items"] if one["name"] == "Hi"]


def test_an_announcement_halts_when_its_maker_says_so(page: Page, site: ConsoleSite) -> None:
    go(page, "#/announcements")
    page.get_by_label("Text", exact=True).fill("Hello there")
    expect(page.get_by_label("Halt above (% failures)")).to_have_value("10")
    page.get_by_label("Halt above (% failures)").fill("30")
    press(page.get_by_role("button", name="Announce"))
    expect(page.get_by_role("heading", name="Hello there")).to_be_visible()
    (made,) = [one for one in site.run(site.ask("GET /v1/jobs"))["items"] if one["name"] == "Hello there"]
    assert made["policy"]["halt_share"] == 0.3


def test_every_number_of_the_overview_leads_to_its_list(page: Page, site: ConsoleSite) -> None:
    site.run(site.let("turn.failed", turn="f1", session="f", user="x", answer=""))
    stats = page.locator(".stat")
    ways = {
        "Online": ("devices?filter=online", "Devices"),
        "Offline": ("devices?filter=online%3Dfalse", "Devices"),
        "Out of line": ("devices?filter=drift", "Devices"),
        "Talking now": ("live", "Live"),
        "Turns": ("live?view=turns", "Live"),
        "To the first sound": ("live?view=turns", "Live"),
        "Failed turns": ("live?view=failures", "Live"),
    }
    # One of them is read by a request of its own.
    expect(stats).to_have_count(len(ways))
    assert page.locator("div.stat").count() == 0, "a number without a list"
    for name, (place, title) in ways.items():
        go(page, "#/")
        stats.filter(has_text=re.compile(f"^ *{name}")).click()
        expect(page).to_have_url(re.compile(re.escape(f"#/{place}") + "$"))
        expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
    expect(page.get_by_text("Turn failed").first).to_be_visible()
    assert page.locator("main a:is(:not([href]), [href=''])").all_inner_texts() == []
