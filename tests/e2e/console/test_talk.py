"""Somebody talks to an agent in a real Chromium, whose microphone is a recording."""

import asyncio
from collections.abc import Iterator
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
    with running_browser(*fake, recording, "--autoplay-policy=no-user-gesture-required") as browser:
        visitor = Visitor(browser, permissions=["microphone"])
        page = visitor.open(f"{url}/console/")
        # Without an owner the page asks for the code of the first one; a tab that has a token does not.
        page.evaluate("(token) => sessionStorage.setItem('fleet.token', token)", token)
        page.reload()
        page.evaluate(prepare or "0")
        page.get_by_role("link", name="Talk", exact=True).click()
        page.get_by_role("button", name="Start talking").click()
        heard_and_answered(page, 1)
        page.get_by_role("textbox", name="Type instead of speaking").fill("And now?")
        page.get_by_role("button", name="Send").click()
        heard_and_answered(page, 2)
        page.get_by_role("button", name="End the conversation").click()
        expect(page.get_by_role("status").filter(has_text="Not connected")).to_be_visible()
        visitor.leave()
        assert visitor.complaints == []


def heard_and_answered(page: Page, turns: int) -> None:
    said = page.get_by_role("log", name="What was said").locator(".said")
    expect(said.filter(has_text=SAID)).to_have_count(turns, timeout=LIMIT * 1000)
    if turns == 1:
        expect(said.filter(has_text=HEARD)).to_have_count(1)


# By default tests/e2e/test_talk.py talks in PCM, without a browser.
@pytest.mark.parametrize("sound", ["opus", pytest.param("pcm", marks=pytest.mark.slow)])
async def test_a_page_speaks_hears_and_types(models: OpenAiServer, tmp_path: Path, sound: str) -> None:
    async with talk_site(tmp_path, models) as client:
        url = str(client.base_url).removesuffix("/v1/")
        token = client.headers["Authorization"].removeprefix("Bearer ")
        await asyncio.to_thread(converse, url, token, SOUNDS[sound])
