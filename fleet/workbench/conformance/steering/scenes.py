"""The scenes that are in use, and which of them a request belongs to."""

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

from pydantic import JsonValue

from fleet.ground.errors import Overloaded
from fleet.workbench.conformance.steering.records import Records
from fleet.workbench.conformance.steering.script import Scene, letters, mentioned
from fleet.workbench.conformance.steering.voice import MARKS, Marked, dominant
from fleet.workbench.sim.records import clock


class Scenes:
    """Scenes by their marks.

    Args:
        improvise: Whether a mark without a scene gets the plainest one.
    """

    def __init__(self, *, improvise: bool = False) -> None:
        self.records = Records()
        self._improvise = improvise
        self._scenes: dict[int, Scene] = {}
        self._used: set[int] = set()
        self._marks = cycle(MARKS)
        self._last_asked: dict[int, None] = {}
        """Marks in the order of their last request to the chat model."""

    def now(self) -> float:
        return clock.now()

    def free_mark(self) -> int:
        """Take the mark that was given back longest ago.

        Raises:
            Overloaded: All are in use.
        """
        for mark in islice(self._marks, len(MARKS)):
            if mark not in self._used:
                self._used.add(mark)
                self.records.clear(mark)
                return mark
        raise Overloaded("steering: all marks are in use")

    def add(self, scene: Scene) -> None:
        self._used.add(scene.mark)
        self._scenes[scene.mark] = scene

    def release(self, mark: int) -> None:
        self._used.discard(mark)
        self._scenes.pop(mark, None)
        self._last_asked.pop(mark, None)

    def scene(self, mark: int | None) -> Scene | None:
        """Return the scene of a mark."""
        if mark is None:
            return None
        improvised = Scene(mark) if self._improvise and mark in MARKS else None
        return self._scenes.get(mark, improvised)

    def find_heard(self, marks: Sequence[Marked]) -> Scene | None:
        """Return the scene that sounds longest."""
        scenes = (self.scene(mark) for mark in dominant(marks))
        return next((scene for scene in scenes if scene), None)

    def find_asked(self, messages: Sequence[Mapping[str, JsonValue]]) -> tuple[int | None, int]:
        """Return the mark in the newest user message that has one, and how many answers came after it."""
        answers = 0
        for message in reversed(messages):
            if message.get("role") == "assistant":
                answers += 1
            elif message.get("role") == "user" and (mark := mentioned(_text(message))) is not None:
                self._last_asked.pop(mark, None)
                if mark in MARKS:
                    self._last_asked[mark] = None
                return mark, answers
        return None, 0

    def find_spoken(self, text: str) -> tuple[Scene | None, float]:
        """Return whose sentence this is, and which share of its text.

        A sentence without a mark belongs to the scene that was asked last among those whose text holds it.
        """
        sentence = letters(text)
        scene = self.scene(mentioned(text)) or self._find_text(sentence)
        if scene is None:
            return None, 1.0
        wholes = [letters(act.text) for act in scene.rounds]
        lengths = [len(whole) for whole in wholes if sentence in whole]
        return scene, len(sentence) / max(lengths[0], 1) if lengths else 1.0

    def _find_text(self, sentence: str) -> Scene | None:
        if not sentence:
            return None
        found = [scene for scene in self._scenes.values() if any(sentence in letters(act.text) for act in scene.rounds)]
        order = {mark: at for at, mark in enumerate(self._last_asked)}
        return max(found, key=lambda scene: order.get(scene.mark, -1), default=None)


def _text(message: Mapping[str, JsonValue]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""
