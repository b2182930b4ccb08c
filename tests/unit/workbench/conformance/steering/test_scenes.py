import pytest
from pydantic import JsonValue

from fleet.workbench.conformance.steering.scenes import Scenes
from fleet.workbench.conformance.steering.script import Round, Scene
from fleet.workbench.conformance.steering.voice import Marked


def user(text: JsonValue) -> dict[str, JsonValue]:
    return {"role": "user", "content": text}


ASSISTANT: dict[str, JsonValue] = {"role": "assistant", "content": "scene 199 was before"}
TOOL: dict[str, JsonValue] = {"role": "tool", "content": "scene 198", "tool_call_id": "a"}
SYSTEM: dict[str, JsonValue] = {"role": "system", "content": "scene 197"}


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([SYSTEM, user("scene 100")], (100, 0)),
        ([user("scene 100"), ASSISTANT, TOOL, TOOL], (100, 1)),
        ([user("scene 100"), ASSISTANT, TOOL, ASSISTANT, TOOL], (100, 2)),
        ([user("scene 100"), ASSISTANT, user("scene 101")], (101, 0)),
        ([user("scene 100"), ASSISTANT, user("scene 100")], (100, 0)),
        ([user("scene 100"), ASSISTANT, TOOL, user("It is noon now.")], (100, 1)),
        ([user([{"type": "text", "text": "Scene 100"}, {"type": "image_url", "image_url": {}}])], (100, 0)),
        ([user(None), ASSISTANT], (None, 0)),
        ([SYSTEM, user("hello")], (None, 0)),
        ([], (None, 0)),
    ],
)
def test_the_turn_of_a_request_is_found(messages: list[dict[str, JsonValue]], found: tuple[int | None, int]) -> None:
    assert Scenes().find_asked(messages) == found


def test_the_staged_mark_that_sounds_longest_is_heard() -> None:
    scenes = Scenes()
    marks = [Marked(100, 0.0, 0.5), Marked(101, 0.6, 3.0), Marked(102, 3.0, 4.0), Marked(100, 4.0, 4.9)]
    assert scenes.find_heard(marks) is None
    for mark in (100, 102):
        scenes.add(Scene(mark))
    assert scenes.find_heard(marks) == Scene(100)
    assert scenes.find_heard([]) is None


def test_a_scene_replaces_the_one_with_its_mark_until_it_is_released() -> None:
    scenes = Scenes()
    scenes.add(Scene(100, "first"))
    scenes.add(Scene(100, "second"))
    assert scenes.scene(100) == Scene(100, "second")
    scenes.release(100)
    scenes.release(100)
    assert scenes.scene(100) is None
    assert scenes.scene(None) is None


def test_a_mark_that_was_staged_unasked_is_not_lent() -> None:
    scenes = Scenes()
    scenes.add(Scene(100))
    assert [scenes.free_mark(), scenes.free_mark()] == [101, 102]
    scenes.release(101)
    assert scenes.free_mark() == 103


def test_improvising_answers_marks_without_a_scene() -> None:
    scenes = Scenes(improvise=True)
    assert scenes.scene(100) == Scene(100)
    assert scenes.scene(999) is None


def test_a_sentence_has_its_share_of_its_text() -> None:
    scenes = Scenes()
    scene = Scene(100, rounds=(Round("Yes."), Round("First part here. Second part there!")))
    scenes.add(scene)
    assert scenes.find_spoken("Second part there!") == (scene, 15 / 28)
    assert scenes.find_spoken("**First** part here")[1] == 13 / 28
    assert scenes.find_spoken("Scene 100 says something else") == (scene, 1.0)
    assert scenes.find_spoken("Third part.") == (None, 1.0)
    assert scenes.find_spoken("...") == (None, 1.0)


def test_a_released_scenes_sentence_belongs_to_nobody() -> None:
    scenes = Scenes()
    scenes.add(Scene(100, rounds=(Round("Scene 100 is here."),)))
    scenes.find_asked([user("scene 100")])
    scenes.release(100)
    assert scenes.find_spoken("Scene 100 is here.") == (None, 1.0)
