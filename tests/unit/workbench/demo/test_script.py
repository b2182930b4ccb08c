from fleet.workbench.demo.script import SCENES, WANTED_VOLUME
from fleet.workbench.sim.audio.recording import read_recording
from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.tools.board_tools import tools_of


def test_every_line_has_a_recording_of_one_to_five_seconds() -> None:
    for scene in SCENES.values():
        for line in scene.lines:
            assert 1.0 < len(read_recording(line.recording)) / 32_000 < 5.0


def test_every_scene_has_a_question_a_change_and_a_reading() -> None:
    offered = {tool.name for tool in tools_of(find_profile("P1"))}
    for scene in SCENES.values():
        question, change, reading = scene.lines
        assert (question.tool, question.number) == ("", None)
        assert change.number == WANTED_VOLUME != scene.volume
        assert reading.number == scene.battery
        assert {change.tool, reading.tool} <= offered


def test_no_number_of_one_scene_can_pass_for_that_of_another() -> None:
    numbers = [number for scene in SCENES.values() for number in (scene.volume, scene.battery)] + [WANTED_VOLUME]
    assert len(set(numbers)) == len(numbers)
