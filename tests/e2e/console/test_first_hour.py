"""A stranger's first five minutes, as the quick start tells them: from `fleet up` to a job that halts by itself.

The models are scripted, so that it is known what was heard; everything else is what a stranger has. Prints the clicks.
"""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from fleet.workbench.sim.device import SimDevice
from fleet.workbench.sim.network.faults import Faults
from fleet.workbench.sim.records.turns import Turn
from tests.support.browser import Visitor, running_browser
from tests.support.console_page import lasting_messages
from tests.support.fleet_process import FleetProcess, fleet_up
from tests.support.openai_server import Answer, Request, run_openai_server, spoken
from tests.support.recordings import recordings
from tests.support.sim_house import SimHouse, sim_house
from tests.support.talk_site import TONE
from tests.support.waking import wake_up

pytestmark = pytest.mark.slow
LIMIT = 180_000.0
MOST_CLICKS = 45
HEARD, PLAIN, PIRATE = "What do you hear?", "It is quiet here.", "Only the sea, captain!"
PROMPT, VOICE = "You are a pirate.", "nova"
LISTEN = "Follow live"
SET_VOLUME, VOLUME = "self.audio_speaker.set_volume", 40
CANARY = 4
HIGH = (b"\x00\x20" * 6 + b"\x00\xe0" * 6) * 2000
"""An octave above `TONE`."""
FIRST = "02:00:00:00:01:00"
OTHERS = [f"02:00:00:00:01:{number:02x}" for number in range(1, 6)]
BROKEN = OTHERS[2:]
"""Devices on which each tool fails: a canary of four has at least one of them, and at least one of the others."""
_COUNT_CLICKS = """document.addEventListener('click', (event) => {
  if (event.isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
}, true)"""


def answer(request: Request) -> Answer:
    """Answer as the prompt wants."""
    return spoken(PIRATE if PROMPT in json.dumps(request.json) else PLAIN)


def speak(request: Request) -> Answer:
    """Speak an octave higher with the new voice."""
    return Answer([HIGH if request.json.get("voice") == VOICE else TONE], kind="audio/pcm")


def pitch(turn: Turn) -> float:
    """Return the loudest frequency that the device has played, in Hz."""
    heard = np.frombuffer(turn.heard(), "<i2")
    return float(np.argmax(np.abs(np.fft.rfft(heard)))) * turn.sample_rate / len(heard)


def volume_calls(device: SimDevice) -> int:
    """Return how often a device was asked to change its volume."""
    calls = [step.detail["name"] for step in device.journal.steps if step.name == "tool call"]
    return calls.count(SET_VOLUME)


class Stranger:
    """Somebody with a browser and a few devices."""

    def __init__(self, page: Page, house: SimHouse) -> None:
        self.page, self._house = page, house

    def begin(self, code: str) -> None:
        self.page.get_by_role("textbox", name="One-time code").fill(code)
        self.page.get_by_role("textbox", name="Name").fill("ling")
        self.page.get_by_label("Password").fill("correct horse battery")
        self.page.get_by_role("button", name="Begin").click()
        expect(self.page.locator(".shell")).to_be_visible(timeout=LIMIT)

    def admit_all(self) -> None:
        """Accept each device that shows a code."""
        self._open("Overview")
        for device in self._house.devices:
            row = self.page.locator(".row.apart").filter(has=self.page.get_by_role("link", name=device.mac))
            row.get_by_role("button", name="Accept").click(timeout=LIMIT)
            expect(row).to_have_count(0, timeout=LIMIT)
        self._house.wait_for_all()

    def see_a_conversation(self, said: str) -> Turn:
        """Talk to the first device, and read along; return what it heard."""
        self._open("Devices")
        self.page.get_by_role("row", name=re.compile(FIRST)).click(timeout=LIMIT)
        self.page.get_by_role("link", name=LISTEN).click(timeout=LIMIT)
        expect(self.page.get_by_text("Watching")).to_be_visible(timeout=LIMIT)
        turn = self._talk()
        assert turn.outcome == "answered"
        log = self.page.get_by_role("log", name="Transcript")
        expect(log.get_by_text(HEARD).last).to_be_visible(timeout=LIMIT)
        expect(log.get_by_text(said)).to_be_visible(timeout=LIMIT)
        return turn

    def change_prompt_and_voice(self) -> None:
        """Make an agent for the whole site."""
        self._open("Agents")
        self.page.get_by_role("button", name="New agent").first.click()
        self.page.get_by_role("dialog").get_by_role("textbox", name="Name").fill("pirate")
        self.page.get_by_role("dialog").get_by_role("button", name="Add").click()
        self.page.get_by_role("textbox", name="Prompt").fill(PROMPT)
        self.page.get_by_role("combobox", name="Voice").fill(VOICE)
        with lasting_messages(self.page):
            self.page.get_by_role("button", name="Save the draft").click()
            expect(self.page.get_by_text("The draft is saved")).to_be_visible(timeout=LIMIT)
        self.page.get_by_role("button", name="Publish").click()
        self.page.get_by_role("dialog").get_by_role("button", name="Publish").click()
        expect(self.page.get_by_role("dialog")).to_have_count(0, timeout=LIMIT)
        self.page.get_by_role("link", name="Who has it").click()
        self.page.get_by_role("button", name="Assign").click()
        self.page.get_by_role("dialog").get_by_role("button", name="Assign").click()
        expect(self.page.get_by_role("listitem").filter(has_text="The whole site")).to_be_visible(timeout=LIMIT)

    def set_the_volume_of_a_group(self) -> None:
        """Save a query as a group, and set the volume of its devices, a few first."""
        self._open("Groups")
        self.page.get_by_role("link", name="New group").first.click()
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_role("textbox", name="Name").fill("House")
        dialog.get_by_role("textbox", name="Query").fill("online")
        dialog.get_by_role("button", name="Add").click()
        self.page.get_by_role("link", name="Make a job").click()
        self.page.get_by_role("combobox", name="Tool").select_option(SET_VOLUME)
        self.page.get_by_role("spinbutton").first.fill(str(VOLUME))
        self.page.get_by_role("button", name="Next").click()
        self.page.get_by_role("button", name="Next").click()
        self.page.get_by_role("combobox", name="Stages").select_option("careful")
        self.page.get_by_label("First devices").fill(str(CANARY))
        self.page.get_by_role("button", name="Begin", exact=True).click(timeout=LIMIT)
        expect(self.page.get_by_role("main").get_by_text("Halted").first).to_be_visible(timeout=LIMIT)

    @property
    def clicks(self) -> int:
        return int(self.page.evaluate("sessionStorage.clicks"))

    def _open(self, name: str) -> None:
        self.page.get_by_role("navigation", name="Menu").get_by_role("link", name=name, exact=True).click()

    def _talk(self) -> Turn:
        device = self._house.devices[0]

        async def talk() -> Turn:
            await wake_up(device)
            turn = await device.say(recordings("en")[2].pcm(), LIMIT / 1000)
            await device.hang_up(240)
            return turn

        return self._house.run(talk())


def shown(fleet: FleetProcess, pattern: str) -> str:
    """Return what `fleet up` shows."""
    found = re.search(pattern, fleet.shown)
    assert found, fleet.shown
    return found[1]


def test_a_stranger_gets_from_nothing_to_a_job_that_halts(tmp_path: Path) -> None:
    begun = time.monotonic()
    with run_openai_server() as models:
        models.answer("chat/completions", answer)
        models.transcriptions(Answer([json.dumps({"text": HEARD, "language": "en"}).encode()]))
        models.answer("audio/speech", speak)
        settings = {f"{name}_BASE_URL": models.url for name in ("LLM", "ASR", "TTS")}
        settings |= {"LLM_MODEL": "scripted", "FLEET_ACTIVATION": "code", "FLEET_PUBLIC_HOST": "127.0.0.1"}
        with fleet_up(tmp_path, **settings) as fleet, sim_house(fleet.ota) as house, running_browser() as browser:
            visitor = Visitor(browser)
            visitor.prepare(_COUNT_CLICKS)
            page = visitor.open(shown(fleet, r"Operators: (\S+)"))
            stranger = Stranger(page, house)
            stranger.begin(shown(fleet, r"within an hour: (\S+)"))
            house.switch_on(FIRST)
            for mac in OTHERS:
                house.switch_on(mac, Faults(tool_errors=1.0 if mac in BROKEN else 0.0))
            stranger.admit_all()
            before = stranger.see_a_conversation(PLAIN)
            stranger.change_prompt_and_voice()
            after = stranger.see_a_conversation(PIRATE)
            assert (before.reply, after.reply) == (PLAIN, PIRATE)
            assert pitch(after) == pytest.approx(2 * pitch(before), rel=0.02), "the new voice is heard"
            stranger.set_the_volume_of_a_group()
            called = [device for device in house.devices if volume_calls(device)]
            assert len(called) == CANARY, "the others are spared"
            louder = {device.mac for device in house.devices if device.board.volume == VOLUME}
            assert louder == {device.mac for device in called} - set(BROKEN)
            assert louder
            print(f"{stranger.clicks} clicks, {time.monotonic() - begun:.0f} seconds with the start of the server")
            assert stranger.clicks <= MOST_CLICKS
            page.close()
            visitor.leave()
            assert visitor.complaints == []
