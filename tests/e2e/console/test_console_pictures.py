"""The pictures of the console in the documents; with CONSOLE_PICTURES set to a folder, they are written there."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.support.browser import Visitor, running_browser
from tests.support.console_page import sign_in
from tests.support.console_pictures import SHOWN, SIZE, picture_of, take_picture
from tests.support.console_places import LOCALES, PLACES, Language, show
from tests.support.console_site import ConsoleSite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("CONSOLE_PICTURES" not in os.environ, reason="no folder for pictures is named"),
]
Talk = tuple[tuple[str, str, tuple[str, ...]], ...]
TALKS: dict[Language, Talk] = {
    "en": (
        ("What time is breakfast?", "", ("Breakfast is from seven to half past ten,", "in the winter garden.")),
        ("Turn it up a little.", "self.audio_speaker.set_volume", ("I have set the volume to sixty.",)),
    ),
    "zh": (
        ("早餐几点开始？", "", ("早餐七点到十点半，", "在冬季花园。")),
        ("声音大一点。", "self.audio_speaker.set_volume", ("音量已经调到六十。",)),
    ),
}
"""What the first device hears, calls and says."""
_READABLE = """() => {
  const drawn = [...'总览'].map((sign) => {
    const draw = new OffscreenCanvas(40, 40).getContext('2d');
    draw.font = '30px sans-serif';
    draw.fillText(sign, 5, 32);
    return draw.getImageData(0, 0, 40, 40).data.join();
  });
  return drawn[0] !== drawn[1];
}"""
"""Whether there is a font with Chinese characters: without one, all of them are the same box."""


@pytest.mark.parametrize("language", LOCALES)
def test_pictures_are_written(tmp_path: Path, language: Language) -> None:
    folder = Path(os.environ["CONSOLE_PICTURES"])
    with ConsoleSite.running(tmp_path, "shown") as site, running_browser() as browser:
        visitor = Visitor(browser, locale=LOCALES[language], viewport=SIZE, reduced_motion="reduce")
        page = visitor.open(f"{site.url}/console/")
        expect(page.get_by_role("button").first).to_be_visible()
        assert page.evaluate(_READABLE), "Install a Chinese font: scripts/setup --system fonts-wqy-zenhei"
        take_picture(browser, page, picture_of("sign-in", language, folder))
        sign_in(page)
        # What lies under the pointer would look chosen.
        page.mouse.move(0, 0)
        expect(page.locator(".shell")).to_be_visible()
        for name in SHOWN:
            if name in PLACES:
                show(page, PLACES[name])
                if name == "live":
                    converse(site, language)
                    expect(page.get_by_role("log").get_by_role("img")).to_have_count(len(TALKS[language]))
                    talks = page.locator(".talkers button").first
                    expect(talks).to_contain_text(re.compile("2 (turns|轮)"))
                    expect(talks).to_be_in_viewport()
                take_picture(browser, page, picture_of(name, language, folder))
        page.close()
        visitor.leave()
        assert visitor.complaints == []


def converse(site: ConsoleSite, language: Language) -> None:
    """Let the first device talk, so that its transcript has something to show."""
    mac = site.macs[0]
    site.run(site.watched(mac))
    site.run(site.let("session.started", mac, session="shown", dialect="xiaozhi"))
    for number, (question, tool, sentences) in enumerate(TALKS[language]):
        about = {"turn": f"shown-{number}", "session": "shown"}
        site.run(site.say(mac, "turn.heard", text=question, language=language, **about))
        for index, text in enumerate(sentences):
            site.run(site.say(mac, "turn.sentence", index=index, text=text, **about))
        if tool:
            site.run(site.let("tool.called", mac, tool=tool, outcome="ok", ms=120, **about))
        site.run(site.say(mac, "turn.ended", outcome="answered", **about))
        stages = {"heard": 260, "first_token": 310, "first_sentence": 480}
        site.run(site.let("turn.answered", mac, agent="concierge", language=language, stages=stages, **about))
        spoken = {"turn": about["turn"], "first_audio_ms": 1_150, "spoken_ms": 2_400, "interrupted": False}
        site.run(site.let("turn.spoken", mac, **spoken))
