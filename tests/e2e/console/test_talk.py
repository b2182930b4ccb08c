"""Somebody talks to an agent in a real Chromium, whose microphone is a recording."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visitor, running_browser
from tests.support.openai_server import OpenAiServer
from tests.support.recordings import recordings
from tests.support.talk_site import HEARD, LIMIT, SAID, talk_models, talk_site

pytestmark = pytest.mark.scripted

SOUNDS = {"opus": "", "pcm": "delete globalThis.AudioEncoder;"}
"""What a page does first, by the sound that its browser then has."""


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with talk_models() as server:
        yield server


def converse(url: str, token: str, prepare: str) -> None:
    """Speak, hear the answer, type, and end the conversation."""
    fake = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
    recording = f"--use-file-for-fake-audio-capture={recordings('en')[2].path}%noloop"
    with talking(url, token, prepare, *fake, recording) as page:
        heard_and_answered(page, 1)
        ask_in_writing(page, "And now?")
        heard_and_answered(page, 2)


def converse_in_writing(url: str, token: str) -> None:
    """Type in a browser without a microphone, and read the answer."""
    with talking(url, token, "") as page:
        expect(page.get_by_text("There is no microphone, or this page may not use it.")).to_be_visible()
        ask_in_writing(page, "Hello there")
        expect(page.get_by_role("log", name="What was said").locator(".said.answer")).to_have_text(
            SAID, timeout=LIMIT * 1000
        )
        expect(page.get_by_role("status").filter(has_text="Listening")).to_be_visible(timeout=LIMIT * 1000)


@contextmanager
def talking(url: str, token: str, prepare: str, *arguments: str) -> Iterator[Page]:
    """Begin a conversation in a browser; end it after the block."""
    with running_browser(*arguments, "--autoplay-policy=no-user-gesture-required") as browser:
        visitor = Visitor(browser, permissions=["microphone"])
        page = visitor.open(f"{url}/console/")
        # Without an owner the page asks for the code of the first one; a tab that has a token does not.
        page.evaluate("(token) => sessionStorage.setItem('fleet.token', token)", token)
        page.reload()
        page.evaluate(prepare or "0")
        page.get_by_role("link", name="Talk", exact=True).click()
        page.get_by_role("button", name="Start talking").click()
        yield page
        page.get_by_role("button", name="End the conversation").click()
        expect(page.get_by_role("status").filter(has_text="Not connected")).to_be_visible()
        visitor.leave()
        assert visitor.complaints == []


def ask_in_writing(page: Page, text: str) -> None:
    page.get_by_role("textbox", name="Type instead of speaking").fill(text)
    page.get_by_role("button", name="Send").click()


def heard_and_answered(page: Page, turns: int) -> None:
    said = page.get_by_role("log", name="What was said").locator(".said")
    expect(said.filter(has_text=SAID)).to_have_count(turns, timeout=LIMIT * 1000)
    if turns == 1:
        expect(said.filter(has_text=HEARD)).to_have_count(1)


# By default tests/e2e/test_talk.py talks in PCM, without a browser.
@pytest.mark.parametrize("sound", ["opus", pytest.param("pcm", marks=pytest.mark.slow)])
async def test_a_page_speaks_hears_and_types_also_without_a_microphone(
    models: OpenAiServer, tmp_path: Path, sound: str
) -> None:
    async with talk_site(tmp_path, models) as client:
        url = str(client.base_url).removesuffix("/v1/")
        token = client.headers["Authorization"].removeprefix("Bearer ")
        await asyncio.to_thread(converse, url, token, SOUNDS[sound])
        await asyncio.to_thread(converse_in_writing, url, token)
