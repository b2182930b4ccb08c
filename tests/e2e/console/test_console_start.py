"""The first hour in a real Chromium: from a server that nobody owns to the first conversation."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import segno
from playwright.sync_api import Browser, Page, expect

from fleet.adapters.sealing import new_key
from fleet.adapters.sql.device_copies import DeviceCopyRows
from fleet.adapters.sql.device_rows import DeviceRows, NewDevice
from fleet.core.device_facts import DeviceFacts
from tests.support.browser import Visitor
from tests.support.console_page import follow_events, go, lasting_messages, sign_in
from tests.support.console_site import ConsoleSite
from tests.support.control_server import FULL
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server

PASSWORD = "correct horse battery"
MAC = "02:00:00:00:00:01"
HEAR = """() => {
  window.heard = [];
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...at) {
    window.heard.push(this.buffer.duration);
    document.documentElement.dataset.heard = window.heard.length;
    start.apply(this, at);
  };
}"""
"""Notes how many seconds each sound has that the page plays."""
CLICK_AT_ONCE = """(name) => new MutationObserver((_, watch) => {
  const button = document.querySelector(name);
  if (!button) return;
  watch.disconnect();
  button.click();
}).observe(document.body, { childList: true, subtree: true })"""
"""Clicks on something as soon as it is drawn."""
SOUND = b"\x00\x20\x00\xe0" * 6_000
"""Half a second at 24 kHz."""


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    visitor = Visitor(browser, viewport={"width": 390, "height": 844}, timezone_id="Asia/Shanghai")
    yield visitor
    visitor.leave()
    # Chromium itself notes each answer that refuses something.
    assert [text for text in visitor.complaints if not re.search("status of (4|502)", text)] == []


def following(page: Page, heading: str) -> None:
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("heading", name=heading)).to_be_visible()


def become_owner(page: Page, code: str) -> None:
    page.get_by_role("textbox", name="One-time code").fill(code)
    page.get_by_role("textbox", name="Name").fill("ling")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Begin").click()
    expect(page.get_by_role("link", name="Owner ✓")).to_be_visible()


def hear_a_voice(page: Page, models: OpenAiServer) -> None:
    """Add a voice at an address of one's own, test it and hear it."""
    page.evaluate(HEAR)
    page.get_by_role("button", name="Add: Speech synthesis").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Provider").select_option("SiliconFlow")
    expect(dialog.get_by_label("Address")).to_have_value("https://api.siliconflow.cn/v1")
    dialog.get_by_label("Address").fill(models.url)
    dialog.get_by_label("Key").fill("sk-voice")
    dialog.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Test siliconflow-voice").click()
    page.get_by_role("button", name="Hear siliconflow-voice").click()
    expect(page.get_by_text("first sound")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("data-heard", "1")
    assert page.evaluate("window.heard") == [pytest.approx(0.5, abs=0.01)]
    assert models.requests[-1].headers["authorization"] == "Bearer sk-voice"
    page.get_by_role("button", name="Use them for all devices").click()


def choose_language_and_zone(page: Page) -> None:
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Shanghai")
    page.get_by_label("Language of the conversations").select_option("zh")
    page.get_by_label("Time zone").fill("Europe/Lisbon")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Language and time ✓")).to_be_visible()


def test_the_console_leads_from_a_code_to_the_first_conversation(visitor: Visitor, tmp_path: Path) -> None:
    with run_openai_server() as models, ConsoleSite.running(tmp_path, "new", secret_keys=new_key()) as new:
        models.models("m")
        models.speech(Answer([SOUND], kind="audio/pcm"))
        page = visitor.open(f"{new.url}/console/")
        expect(page.get_by_text("Restart the server: it shows a new one.")).to_be_visible()
        code = new.run(new.first_code())
        page.reload()
        expect(page.get_by_role("textbox", name="One-time code")).to_be_focused()
        become_owner(page, code)
        expect(page.get_by_role("heading", name="Your models")).to_be_visible()
        assert page.url.endswith("#/start/models"), "a step that is done stays until somebody goes on"
        hear_a_voice(page, models)
        # This control has no chat model, which the answer to the question says; the voice is in use.
        expect(page.get_by_role("alert")).to_be_visible()
        following(page, "Language and time zone")
        choose_language_and_zone(page)
        following(page, "Connect your first device")
        expect(page.get_by_role("img", name="QR code of the address")).to_be_visible()
        expect(page.get_by_text("/xiaozhi/ota/").first).to_be_visible()
        expect(page.get_by_text("None yet.")).to_be_visible()
        facts = DeviceFacts("02:00:00:00:00:02", "waiting", stranger=True, last_boot=1)
        new.run(DeviceCopyRows(new.stage.database).write([facts], {}))
        page.reload()
        expect(page.get_by_role("heading", name="Connect your first device")).to_be_visible()
        expect(page.get_by_text("None yet.")).to_be_visible()
        expect(page.get_by_role("link", name="First device", exact=True)).to_be_visible()
        follow_events(page)
        new.run(DeviceRows(new.stage.database, 1).add([NewDevice(MAC, name="Kitchen")]))
        new.run(new.let("device.registered", MAC))
        expect(page.get_by_role("link", name="Kitchen")).to_be_visible()
        expect(page.get_by_role("link", name="First device ✓")).to_be_visible()
        following(page, "The first conversation")
        expect(page.get_by_role("link", name="Talk from this browser")).to_be_visible()
        page.get_by_role("button", name="Skip").click()
        expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
        made = new.run(settled(new))
        assert made["draft"] == {"language": "zh", "voice": "siliconflow-voice"}
        assert made["zone"] == {"timezone": "Europe/Lisbon"} and made["continuous"] is True
        page.goto("about:blank")


def test_no_device_gets_a_chat_model_that_does_not_answer(visitor: Visitor, tmp_path: Path) -> None:
    with ConsoleSite.running(tmp_path, "empty", secret_keys=new_key()) as site:
        page = sign_in(visitor.open(f"{site.url}/console/"))
        go(page, "#/start/models")
        page.get_by_role("button", name="Add: Chat").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Provider").select_option("Qwen (DashScope)")
        expect(dialog.get_by_label("Name")).to_have_value("qwen-chat")
        dialog.get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Use them for all devices").click()
        expect(page.get_by_text("Nothing was changed")).to_be_visible()
        assert (site.run(site.ask("GET /v1/assignments")))["items"] == []
        [agent] = (site.run(site.ask("GET /v1/agents")))["items"]
        assert agent["live"] in (0, None)
        draft = site.run(site.ask(f"GET /v1/agents/{agent['id']}"))["draft"]
        assert draft["chat"]["provider"] is None, "a later step publishes the draft"
        page.goto("about:blank")


async def settled(site: ConsoleSite) -> dict[str, object]:
    """Return what the steps have left."""
    await site.stage.add_token(FULL, "agents:read", "jobs:read")
    [given] = (await site.ask("GET /v1/assignments"))["items"]
    assert given["site"] is True
    agent = await site.ask(f"GET /v1/agents/{given['agent']}")
    [job] = (await site.ask("GET /v1/jobs"))["items"]
    assert agent["live"] == 2
    draft = {"language": agent["draft"]["language"], "voice": agent["draft"]["voice"]["provider"]}
    return {"draft": draft, "zone": job["shadow"]["desired"], "continuous": job["continuous"]}


def test_steps_are_skipped_and_found_again_and_a_token_makes_the_owner(visitor: Visitor, tmp_path: Path) -> None:
    with ConsoleSite.running(tmp_path, "empty") as site:
        page = visitor.open(f"{site.url}/console/")
        expect(page.get_by_text("There is no account yet.")).to_be_visible()
        sign_in(page)
        # At once: before anything else happens that was asked for while the step was drawn.
        page.evaluate(CLICK_AT_ONCE, ".actions .quiet")
        go(page, "#/start")
        expect(page.get_by_role("heading", name="Your models")).to_be_visible()
        page.get_by_role("link", name="Owner –").click()
        page.get_by_role("textbox", name="Name").fill("ling")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Make the owner").click()
        expect(page.get_by_role("link", name="Owner ✓")).to_be_visible()
        go(page, "#/")
        expect(page.get_by_text("1 of 5 steps are done.")).to_be_visible()
        page.get_by_role("button", name="Do not show this here any more").click()
        expect(page.get_by_text("1 of 5 steps are done.")).to_have_count(0)
        page.goto("about:blank")


@pytest.mark.slow
def test_a_device_shows_a_code_is_accepted_and_its_conversation_is_read_along(visitor: Visitor, tmp_path: Path) -> None:
    with ConsoleSite.running(tmp_path) as site:
        page = sign_in(visitor.open(f"{site.url}/console/"))
        go(page, "#/start/device")
        [shown] = (site.run(site.ask("GET /v1/devices:waiting")))["items"]
        # A list that is read late must not offer what was decided.
        page.route("**/v1/devices:waiting*", lambda route: route.fulfill(json={"items": [shown], "next": None}))
        with lasting_messages(page):
            page.get_by_role("button", name="Accept").first.click()
            expect(page.get_by_text(f"{site.macs[1]} was added")).to_be_visible()
        expect(page.get_by_role("link", name=site.macs[1])).to_have_count(0)
        following(page, "The first conversation")
        expect(page.get_by_text("Watching")).to_be_visible()
        mac = page.get_by_label("Device", exact=True).input_value()
        site.run(site.watched(mac))
        site.run(site.say(mac, "turn.heard", text="Good morning!", language="en", turn="t", session="s"))
        expect(page.get_by_role("log").get_by_text("Good morning!")).to_be_visible()
        follow_events(page)
        # All devices hang up: what was said stays.
        page.route("**/v1/devices?*filter=online*", lambda route: route.fulfill(json={"items": [], "next": None}))
        with page.expect_response("**/v1/devices?*filter=online*"):
            site.run(site.let("device.offline", mac))
        expect(page.get_by_label("Device", exact=True)).to_have_count(0)
        expect(page.get_by_role("log").get_by_text("Good morning!")).to_be_visible()
        page.goto("about:blank")


def test_a_qr_code_has_the_modules_that_the_standard_says(visitor: Visitor, tmp_path: Path) -> None:
    # Only full ones are compared: what fills the rest is free.
    texts = [
        "h" * 17,
        "é" * 16,
        "http://fleet.example.com:8000/xiaozhi/ota/?a=12345678"[:53],
        "x" * 78,
        "中" * 35 + "y",
    ]
    with ConsoleSite.running(tmp_path, "empty") as site:
        page = visitor.open(f"{site.url}/console/")
        made = page.evaluate(
            "async (texts) => { const { qrModules } = await import('./parts/qr.js'); return texts.map(qrModules); }",
            [*texts, "z" * 107],
        )
        page.goto("about:blank")
    assert made.pop() is None, "too long"
    for text, modules in zip(texts, made, strict=True):
        code = segno.make(text.encode(), error="l", mask=0, boost_error=False, micro=False, mode="byte")
        assert modules == [[dark == 1 for dark in row] for row in code.matrix], text
