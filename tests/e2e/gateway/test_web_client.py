"""The web test client in a real Chromium, against a gateway that answers by rote."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Visitor, faint, forget, sideways, too_small, unnamed
from tests.support.scripted_gateway import ScriptedGateway

Visit = Callable[..., Visitor]
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
TABLET = {"viewport": {"width": 900, "height": 700}}
PANES = ("Chat", "Setup", "Log")

_SHOWN = """() => [...document.querySelectorAll('body *:not(script, .json *)')].flatMap((one) => [
  ...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.textContent.trim()),
  one.ariaLabel, one.title, one.placeholder, one.matches('.answering input') && one.value]).filter(Boolean)"""

_NOTE_STATES = """() => {
  window.states = [];
  const note = () => states.push(find("state").textContent);
  new MutationObserver(note).observe(find("state"), { childList: true });
}"""
"""Notes each state of the connection: one of them may last a second only."""


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with ScriptedGateway.running() as gateway:
        yield gateway


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visit]:
    """Open a window; at the end nothing may have complained in it."""
    visitors: list[Visitor] = []

    def enter(**options: Any) -> Visitor:
        visitors.append(Visitor(browser, **options))
        return visitors[-1]

    yield enter
    for visitor in visitors:
        visitor.leave()
        assert visitor.complaints == []


@pytest.fixture(scope="module")
def desk(browser: Browser) -> Iterator[tuple[Visitor, Page]]:
    """One window for most tests: to open one costs more than most of them. Each has a gateway of its own."""
    visitor = Visitor(browser, viewport={"width": 1440, "height": 900})
    yield visitor, visitor.open("about:blank")
    visitor.leave()


@pytest.fixture
def page(gateway: ScriptedGateway, desk: tuple[Visitor, Page]) -> Iterator[Page]:
    """The page of a gateway; at the end nothing may have complained in it."""
    visitor, page = desk
    page.goto(f"{gateway.url}/test")
    yield page
    forget(page)
    complaints = list(visitor.complaints)
    visitor.complaints.clear()
    assert complaints == []


@pytest.fixture
def connected(page: Page) -> Page:
    return connect(page)


def connect(page: Page) -> Page:
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator(".status.registered")).to_have_count(4)
    return page


def say(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Message", exact=True).fill(text)
    page.get_by_role("button", name="Send", exact=True).click()


def answers(page: Page) -> Any:
    return page.get_by_role("article", name="Assistant")


def by_hand(page: Page) -> None:
    page.get_by_role("radio", name="Answer by hand").check()


def shown_words(page: Page) -> list[str]:
    """Return every text and label of the conversation, the log and the forms, without the ticking seconds."""
    texts: list[str] = page.evaluate(_SHOWN)
    return [re.sub(r"\d+ s$", "N s", text) for text in texts]


def left_in_english(page: Page) -> list[str]:
    """Return what a Chinese page still shows in the page's English words."""
    english: dict[str, str] = page.evaluate("WORDS.en")
    phrases = [re.sub(r"\\{\w+\\}", ".*?", re.escape(text)) for key, text in english.items() if "anguage" not in key]
    known = re.compile(rf"(?<!\w)({'|'.join(phrases)})(?!\w)")
    return [text for text in shown_words(page) if known.search(text)]


def test_one_click_connects_and_registers_the_tools_of_the_document(page: Page, gateway: ScriptedGateway) -> None:
    expect(page.get_by_role("textbox", name="Address of the gateway")).to_have_value(gateway.websocket)
    connect(page)
    expect(page.locator("#state")).to_have_text("Connected")
    expect(page.get_by_role("button", name="Session session-1")).to_be_visible()
    tools = {tool["name"]: tool for tool in gateway.expect("register_tools")["tools"]}
    assert set(tools) == {"get_device_info", "control_device", "get_battery", "set_volume"}
    assert tools["control_device"]["parameters"]["required"] == ["action", "device"]
    assert tools["set_volume"]["parameters"]["properties"]["volume"]["maximum"] == 100


def test_root_of_the_gateway_leads_to_the_page(page: Page, gateway: ScriptedGateway) -> None:
    page.goto(gateway.url)
    expect(page).to_have_url(f"{gateway.url}/test")


def test_an_example_question_connects_registers_and_asks_by_itself(page: Page, gateway: ScriptedGateway) -> None:
    page.get_by_role("button", name="What time is it?").click()
    expect(answers(page)).to_contain_text("You said: What time is it?")
    assert gateway.expect("text_input")["session_id"] == "session-1"
    expect(page.locator("#steps .done")).to_have_count(3)


def test_talk_goes_both_ways(connected: Page) -> None:
    say(connected, "Good morning")
    expect(connected.get_by_role("article", name="You")).to_have_text("Good morning")
    expect(answers(connected)).to_contain_text("You said: Good morning")
    expect(connected.locator(".waiting")).to_have_count(0)


def test_callbacks_are_answered_by_the_simulated_device(connected: Page, gateway: ScriptedGateway) -> None:
    say(connected, "both")
    battery, volume = gateway.expect("tool_result"), gateway.expect("tool_result", 2)
    assert battery == {
        "type": "tool_result",
        "call_id": "call-1",
        "result": {"level": 85, "charging": False},
        "success": True,
        "error": None,
    }
    assert volume["result"] == {"volume": 70, "status": "set"}
    expect(connected.get_by_role("slider", name="Volume")).to_have_value("70")
    expect(answers(connected)).to_contain_text('{"level": 85, "charging": false}')


def test_the_simulated_device_tells_what_it_was_set_to(connected: Page, gateway: ScriptedGateway) -> None:
    connected.get_by_role("slider", name="Battery").fill("12")
    connected.get_by_role("checkbox", name="Charging").check()
    say(connected, "battery")
    assert gateway.expect("tool_result")["result"] == {"level": 12, "charging": True}


def test_a_callback_is_answered_by_hand(connected: Page, gateway: ScriptedGateway) -> None:
    by_hand(connected)
    say(connected, "volume")
    result = connected.get_by_role("textbox", name="Result as JSON")
    assert json.loads(result.input_value()) == {"volume": 30, "status": "set"}
    result.fill('{"volume": ')
    connected.get_by_role("button", name="Send result").click()
    expect(connected.locator(".answering [role=alert]")).to_contain_text("Not JSON")
    result.fill("[1, null]")
    connected.get_by_role("button", name="Send result").click()
    sent = gateway.expect("tool_result")
    assert (sent["call_id"], sent["result"], sent["success"]) == ("call-1", [1, None], True)
    expect(answers(connected)).to_contain_text("The tools say: [1, null]")


def test_a_callback_fails_by_hand(connected: Page, gateway: ScriptedGateway) -> None:
    by_hand(connected)
    say(connected, "volume")
    connected.get_by_role("textbox", name="Error text").fill("The knob is stuck")
    connected.get_by_role("button", name="Send failure").click()
    sent = gateway.expect("tool_result")
    assert (sent["success"], sent["result"], sent["error"]) == (False, None, "The knob is stuck")
    expect(connected.locator("details.tool.bad")).to_contain_text("failed")
    expect(connected.get_by_role("slider", name="Volume")).to_have_value("50")


def test_a_card_that_was_left_by_a_failed_turn_is_late_and_still_can_be_sent(
    connected: Page, gateway: ScriptedGateway
) -> None:
    by_hand(connected)
    say(connected, "expire")
    card = connected.locator("details.tool")
    expect(card.locator(".tool-state")).to_contain_text("late")
    expect(connected.get_by_role("alert").filter(has_text="TOOL_RESULT_TIMEOUT")).to_contain_text("CLIENT_TOOL_TIMEOUT")
    connected.get_by_role("button", name="Send result").click()
    gateway.expect("tool_result")
    expect(connected.get_by_role("alert").filter(has_text="INVALID_MESSAGE")).to_be_visible()


def test_tools_of_ones_own_are_registered_and_answered(connected: Page, gateway: ScriptedGateway) -> None:
    connected.get_by_text("Edit the tools as JSON").click()
    tool = {"name": "light.dim", "description": "Mine", "parameters": {"type": "object", "properties": {}}}
    connected.get_by_role("textbox", name="Tools as JSON").fill(json.dumps([tool]))
    connected.get_by_role("button", name="Register").click()
    assert gateway.expect("register_tools", 2)["tools"] == [tool]
    say(connected, 'call light.dim {"to": 3}')
    assert gateway.expect("tool_result")["result"] == {"ok": True, "arguments": {"to": 3}}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("set_volume {}", "volume must be a whole number from 0 to 100, not undefined"),
        ('set_volume {"volume": 101}', "volume must be a whole number from 0 to 100, not 101"),
        ('control_device {"action": "set_value", "device": "ac"}', "set_value needs a number as its value"),
        ("nobody.knows {}", "Tool 'nobody.knows' not found"),
    ],
)
def test_the_simulated_device_refuses_what_it_cannot_do(
    connected: Page, gateway: ScriptedGateway, call: str, error: str
) -> None:
    say(connected, f"call {call}")
    sent = gateway.expect("tool_result")
    assert (sent["success"], sent["result"], sent["error"]) == (False, None, error)


def test_switched_devices_are_shown(connected: Page, gateway: ScriptedGateway) -> None:
    say(connected, 'call control_device {"action": "turn_on", "device": "light"}')
    assert gateway.expect("tool_result")["result"] == {"device": "light", "state": "on"}
    expect(connected.get_by_role("list", name="Switched devices")).to_have_text("lighton")


def test_what_the_document_forbids_in_tools_is_told_before_the_gateway_refuses_it(connected: Page) -> None:
    connected.get_by_text("Edit the tools as JSON").click()
    editor, check = connected.get_by_role("textbox", name="Tools as JSON"), connected.locator("#tools-check")
    expect(check).to_have_text("4 tools, ready to register.")
    tool = {"name": "light.on", "description": "d", "parameters": {"type": "object", "properties": {}}}
    for tools, complaint in (
        ("[{", "not JSON"),
        ("{}", "list of tools"),
        (json.dumps([tool, tool]), "twice"),
        (json.dumps([{**tool, "parameters": {"type": "array"}}]), "type object"),
        (json.dumps([{**tool, "name": f"t{number}"} for number in range(33)]), "32"),
        *((json.dumps([{**tool, "name": name}]), "not a valid name") for name in ("1a", "a.", "a..b", "a-b", "a" * 65)),
    ):
        editor.fill(tools)
        expect(check).to_contain_text(complaint)
        expect(editor).to_have_attribute("aria-invalid", "true")
    editor.fill(json.dumps([tool, {**tool, "name": "tool."}]))
    connected.get_by_role("button", name="Register").click()
    expect(connected.locator("#tool-list li", has_text="tool.")).to_contain_text("Invalid tool name")
    expect(connected.locator("#tool-list li", has_text="light.on")).to_contain_text("registered")


def test_answers_stream_when_asked_for(connected: Page, gateway: ScriptedGateway) -> None:
    connected.get_by_role("checkbox", name=re.compile("Stream")).check()
    connected.get_by_role("slider", name="Temperature").fill("0.2")
    connected.get_by_role("button", name="Apply").click()
    settings = gateway.expect("configure")
    assert settings == {
        "type": "configure",
        "temperature": 0.2,
        "max_tokens": 2048,
        "enable_context": False,
        "stream": True,
    }
    say(connected, "one two three")
    expect(answers(connected).locator("p")).to_have_text("You said: one two three")
    expect(answers(connected)).to_contain_text("First chunk")
    expect(answers(connected)).to_have_count(1)


def test_tools_of_the_server_are_shown(connected: Page) -> None:
    say(connected, "weather")
    card = connected.locator("details.tool")
    expect(card).to_contain_text("get_weather")
    expect(card).to_contain_text("✓ 126 ms")
    card.locator("summary").click()
    expect(card).to_contain_text('"condition": "Sunny"')


def test_an_error_says_what_to_do(connected: Page) -> None:
    say(connected, "fail")
    problem = connected.get_by_role("alert")
    expect(problem).to_contain_text("LLM_ERROR")
    expect(problem).to_contain_text("Failed to process request — Connection timeout")
    expect(problem).to_contain_text("LLM_BASE_URL")
    expect(connected.locator(".waiting")).to_have_count(0)


def test_a_complaint_about_another_frame_does_not_end_the_turn(connected: Page) -> None:
    say(connected, "hang")
    connected.get_by_role("combobox", name="Example").select_option("late or unknown call_id")
    connected.get_by_role("button", name="Send frame").click()
    expect(connected.get_by_role("alert")).to_contain_text("INVALID_MESSAGE")
    expect(connected.locator(".waiting")).to_be_visible()
    connected.get_by_role("button", name="Timings").click()
    expect(connected.locator("#turns article h3")).to_have_text("hang…")


def test_sessions_start_resume_and_end(connected: Page, gateway: ScriptedGateway) -> None:
    field = connected.get_by_role("textbox", name="Session id")
    connected.get_by_role("button", name="Start new").click()
    expect(connected.get_by_role("button", name="Session session-2")).to_be_visible()
    field.fill("session-1")
    connected.get_by_role("button", name="Resume").click()
    expect(connected.get_by_role("button", name="Session session-1")).to_be_visible()
    field.fill("long-gone")
    connected.get_by_role("button", name="Resume").click()
    expect(connected.get_by_role("alert")).to_contain_text("SESSION_ERROR")
    connected.get_by_role("button", name="End", exact=True).click()
    gateway.expect("end_session")
    expect(connected.get_by_role("button", name="Session session-1")).to_be_hidden()
    say(connected, "hello")
    assert "session_id" not in gateway.expect("text_input")
    assert "session_id" not in gateway.expect("start_session")
    assert gateway.expect("start_session", 2)["session_id"] == "session-1"


def test_any_frame_can_be_sent(connected: Page, gateway: ScriptedGateway) -> None:
    send = connected.get_by_role("button", name="Send frame")
    for template, code in (
        ("broken JSON", "INVALID_MESSAGE"),
        ("unknown type", "UNKNOWN_MESSAGE_TYPE"),
        ("late or unknown call_id", "INVALID_MESSAGE"),
        ("empty text", "INVALID_MESSAGE"),
    ):
        connected.get_by_role("combobox", name="Example").select_option(template)
        send.click()
        expect(connected.get_by_role("alert").last).to_contain_text(code)
    expect(connected.get_by_role("alert")).to_have_count(4)
    assert gateway.expect("")["text"] == '{"type": "text_input", "text": '


def test_the_log_shows_filters_and_clears_every_frame(connected: Page) -> None:
    say(connected, "battery")
    expect(answers(connected)).to_have_count(1)
    rows = connected.locator("#messages details:visible")
    expect(rows.filter(has_text="tool_callback")).to_contain_text("get_battery({})")
    connected.get_by_role("combobox", name="Kind of message").select_option("Sent")
    expect(rows).to_have_count(3)
    connected.get_by_role("searchbox", name="Filter the messages").fill("TOOL_RESULT")
    expect(rows).to_have_count(1)
    rows.locator("summary").click()
    expect(rows.locator("pre")).to_contain_text('"level": 85')
    connected.get_by_role("checkbox", name="Pretty").uncheck()
    expect(rows.locator("pre")).to_contain_text('"result":{"level":85')
    rows.get_by_role("button", name="Edit and send again").click()
    expect(connected.get_by_role("textbox", name="Frame")).to_have_value(re.compile("call-1"))
    connected.get_by_role("button", name="Clear").click()
    expect(connected.locator("#messages details")).to_have_count(0)
    expect(connected.locator("#count")).to_have_text("0")


def test_the_log_is_copied_as_json_lines(visit: Visit, gateway: ScriptedGateway) -> None:
    visitor = visit()
    page = connect(visitor.open(f"{gateway.url}/test"))
    visitor.allow("clipboard-read", "clipboard-write")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("#announcer")).to_have_text("Copied")
    lines = [json.loads(line) for line in page.evaluate("navigator.clipboard.readText()").splitlines()]
    assert [(line["sent"], line["frame"]["type"]) for line in lines] == [
        (False, "status"),
        (True, "register_tools"),
        (False, "tools_registered"),
    ]


def test_timings_tell_what_each_step_took(connected: Page) -> None:
    connected.get_by_role("button", name="Ping").click()
    expect(connected.locator("#rtt")).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    say(connected, "both")
    say(connected, "fail")
    expect(connected.get_by_role("alert")).to_have_count(1)
    connected.get_by_role("button", name="Timings").click()
    cards = connected.locator("#turns article")
    expect(cards).to_have_count(2)
    expect(cards.first).to_contain_text("LLM_ERROR")
    expect(cards.last.locator("li")).to_contain_text(["accepted", "get_battery", "set_volume", "answer"])
    expect(connected.locator("#figures dd")).to_have_text([re.compile("ms|s$")] * 4)


def test_a_broken_connection_is_opened_again_and_the_session_resumed(connected: Page, gateway: ScriptedGateway) -> None:
    say(connected, "hang")
    gateway.expect("text_input")
    connected.evaluate(_NOTE_STATES)
    gateway.drop(1011)
    expect(connected.locator("#talk")).to_contain_text("The answer was lost with the connection.")
    assert gateway.expect("start_session")["session_id"] == "session-1"
    expect(connected.locator("#state")).to_have_text("Connected")
    assert "Reconnecting" in connected.evaluate("states[0]")
    gateway.expect("register_tools", 2)


def test_a_full_gateway_is_named(page: Page, gateway: ScriptedGateway) -> None:
    gateway.refuses = True
    page.get_by_role("button", name="Connect", exact=True).click()
    expect(page.locator("#talk")).to_contain_text("(1013): all connections are taken")
    expect(page.locator("#state")).to_have_text("Not connected")


def test_open_callbacks_close_with_the_connection(connected: Page) -> None:
    by_hand(connected)
    say(connected, "volume")
    expect(connected.get_by_role("button", name="Send result")).to_be_visible()
    connected.get_by_role("button", name="Disconnect").click()
    expect(connected.get_by_role("button", name="Send result")).to_have_count(0)
    expect(connected.locator("details.tool")).to_contain_text("The connection closed before an answer.")
    expect(connected.locator("#state")).to_have_text("Not connected")


def test_markup_in_answers_stays_text(connected: Page) -> None:
    markup = "<img src=x onerror=alert(1)><script>alert(2)</script><b>bold</b>"
    say(connected, markup)
    expect(answers(connected).locator("p")).to_have_text(f"You said: {markup}")
    assert connected.locator("#talk").locator("img, script").count() == 0


def test_the_policy_stops_foreign_scripts_and_markup(desk: tuple[Visitor, Page], page: Page) -> None:
    blocked = page.evaluate(
        """async () => {
          const violation = new Promise((done) => {
            addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
            setTimeout(() => done("nothing was blocked"), 240_000);
          });
          const script = document.createElement("script");
          script.append("window.foreign = true");
          document.body.append(script);
          let refused = false;
          try { document.body.innerHTML = "<b>x</b>"; } catch { refused = true; }
          return [await violation, window.foreign === true, refused];
        }"""
    )
    assert blocked[1:] == [False, True]
    assert blocked[0].startswith(("script-src", "require-trusted-types-for"))
    desk[0].complaints.clear()


def test_everything_works_with_the_keyboard_alone(page: Page, gateway: ScriptedGateway) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Go to the message field")).to_be_focused()
    page.get_by_role("textbox", name="Address of the gateway").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state")).to_have_text("Connected")
    page.get_by_role("textbox", name="Message", exact=True).focus()
    page.keyboard.type("first line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("second line")
    page.keyboard.press("Enter")
    assert gateway.expect("text_input")["text"] == "first line\nsecond line"
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("textbox", name="Message", exact=True)).to_have_value("first line\nsecond line")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast_and_controls_have_names(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    connect(page)
    page.get_by_text("Edit the tools as JSON").click()
    by_hand(page)
    for text in ("hello", "fail", "weather", "volume"):
        say(page, text)
    expect(page.locator(".answering")).to_be_visible()
    brightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (brightness < 64) == (scheme == "dark")
    assert faint(page) == []
    assert unnamed(page) == []
    page.get_by_role("button", name="Timings").click()
    assert faint(page) == []


@pytest.mark.parametrize("window", [PHONE, TABLET], ids=["phone", "tablet"])
def test_a_small_window_never_scrolls_sideways(visit: Visit, gateway: ScriptedGateway, window: dict[str, Any]) -> None:
    page = visit(**window).open(f"{gateway.url}/test")
    assert sideways(page) == []
    page.get_by_role("button", name="Setup").click()
    connect(page)
    page.get_by_text("Edit the tools as JSON").click()
    by_hand(page)
    assert sideways(page) == []
    if window is PHONE:
        page.get_by_role("button", name="Chat").click()
    for text in ("x" * 500, "volume"):
        say(page, text)
    expect(page.locator(".answering")).to_be_visible()
    for pane in PANES[window is TABLET :]:
        page.get_by_role("button", name=re.compile(f"^{pane}")).click()
        assert sideways(page) == []
        assert too_small(page, 40 if window is PHONE else 24) == []
    page.locator("#messages summary").last.click()
    page.get_by_role("button", name="Timings").click()
    assert sideways(page) == []


def test_a_callback_by_hand_calls_the_phone_back_to_the_chat(visit: Visit, gateway: ScriptedGateway) -> None:
    page = visit(**PHONE).open(f"{gateway.url}/test")
    page.get_by_role("button", name="Setup").click()
    connect(page)
    by_hand(page)
    page.get_by_role("textbox", name="Frame").fill('{"type": "text_input", "text": "volume"}')
    page.get_by_role("button", name="Send frame").click()
    expect(page.get_by_role("button", name="Send result")).to_be_in_viewport()


def test_the_page_speaks_the_language_of_the_browser(visit: Visit, gateway: ScriptedGateway) -> None:
    page = visit(locale="zh-CN", viewport={"width": 1440, "height": 900}).open(f"{gateway.url}/test")
    expect(page).to_have_title("网关测试客户端")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.get_by_role("button", name="连接", exact=True).click()
    expect(page.locator("#state")).to_have_text("已连接")
    assert gateway.expect("register_tools")["tools"][3]["description"] == "设置本设备的音量"
    page.get_by_role("button", name="English").click()
    expect(page.locator("#state")).to_have_text("Connected")
    expect(page.get_by_role("button", name="Apply")).to_be_visible()


def test_the_language_switch_reaches_what_is_already_shown(connected: Page, gateway: ScriptedGateway) -> None:
    connected.get_by_role("button", name="Apply").click()
    for text in ("weather", "battery", "fail"):
        say(connected, text)
    gateway.expect("tool_result")
    by_hand(connected)
    say(connected, "volume")
    connected.get_by_role("textbox", name="Result as JSON").fill("{")
    connected.get_by_role("button", name="Send result").click()
    connected.locator("#messages summary").last.click()
    gateway.drop(1011)
    gateway.expect("register_tools", 2)
    say(connected, "expire")
    expect(connected.get_by_role("alert").filter(has_text="TOOL_RESULT_TIMEOUT")).to_be_visible()
    say(connected, "hang")
    # Then nothing more comes.
    expect(connected.locator("#messages details", has_text="processing")).to_have_count(6)
    english = shown_words(connected)
    for part in (
        "Session session-1",
        "4 tools registered",
        "server tool",
        "Is LLM_BASE_URL right",
        "Sent at",
        "Sent",
        "The connection closed before",
        "(1011)",
        "Send failure",
        "Waiting for the answer",
        "late",
    ):
        assert any(part in text for text in english), part
    connected.get_by_role("button", name="中文").click()
    assert left_in_english(connected) == []
    connected.get_by_role("button", name="English").click()
    assert shown_words(connected) == english


def test_what_was_typed_into_an_answer_stays_when_the_language_is_switched(connected: Page) -> None:
    by_hand(connected)
    say(connected, "battery")
    failure = connected.locator(".answering input")
    connected.get_by_role("button", name="中文").click()
    expect(failure).to_have_value("设备没有响应")
    failure.fill("The cable is out")
    connected.get_by_role("button", name="English").click()
    expect(failure).to_have_value("The cable is out")


@pytest.mark.parametrize("again", ["no tools", "other tools"])
def test_tools_that_the_new_connection_does_not_have_are_named(
    connected: Page, gateway: ScriptedGateway, again: str
) -> None:
    note = connected.locator("#talk .note", has_text="but not on this one")
    if again == "no tools":
        connected.get_by_role("checkbox", name="after connecting").uncheck()
        dropped = "get_device_info, control_device, get_battery, set_volume"
    else:
        connected.get_by_text("Edit the tools as JSON").click()
        tool = {"name": "set_volume", "description": "Mine", "parameters": {"type": "object", "properties": {}}}
        connected.get_by_role("textbox", name="Tools as JSON").fill(json.dumps([tool]))
        dropped = "get_device_info, control_device, get_battery"
    gateway.drop(1011)
    expect(note).to_have_text(f"Registered on the last connection, but not on this one: {dropped}")
    gateway.drop(1011)
    gateway.expect("start_session", 2)
    say(connected, "still there")
    expect(answers(connected)).to_contain_text("You said: still there")
    expect(note).to_have_count(1)


def test_tools_that_come_back_are_not_called_dropped(connected: Page, gateway: ScriptedGateway) -> None:
    gateway.drop(1011)
    gateway.expect("register_tools", 2)
    say(connected, "hello")
    expect(answers(connected)).to_contain_text("You said: hello")
    expect(connected.locator("#talk .note", has_text="but not on this one")).to_have_count(0)


def test_both_languages_have_the_same_words_with_the_same_gaps(page: Page) -> None:
    gaps = """() => {
      const shape = ([key, text]) => `${key} ${(text.match(/\\{\\w+\\}/g) || []).sort()}`;
      return Object.fromEntries(Object.entries(WORDS).map(([name, words]) => [name, Object.entries(words).map(shape)]));
    }"""
    words = page.evaluate(gaps)
    assert sorted(words["en"]) == sorted(words["zh"])
    assert page.evaluate("ideas => WORDS.en.ideas.split('|').length === WORDS.zh.ideas.split('|').length")
