"""One utterance, read once: its language, concepts, numbers, and the words that no lexicon knows."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from fleet.workbench.demo_llm.concepts import stop_characters, stop_words
from fleet.workbench.demo_llm.lexicon import Language, Mark, concept, find_marks
from fleet.workbench.demo_llm.numbers import Number, find_numbers
from fleet.workbench.demo_llm.pinyin import sounds
from fleet.workbench.demo_llm.units import PAUSES, Unit, cut, has_han, plain

Mood = Literal["command", "query"]

MEASURES = frozenset({"minute", "second", "hour", "degree", "percent"})
CHANGES = frozenset({"increase", "decrease"})
_QUESTION_PARTICLES = frozenset("吗呢")
_STEM = re.compile(r"(?:ing|ed|es|s|er)$")


@dataclass(frozen=True, slots=True)
class Reading:
    """An utterance or a text of a schema. `words` are unknown English words, `runs` unknown Chinese ones."""

    text: str
    language: Language
    units: tuple[Unit, ...]
    marks: tuple[Mark, ...]
    numbers: tuple[Number, ...]
    words: tuple[Unit, ...]
    runs: tuple[str, ...]

    def names(self, *kinds: str) -> tuple[str, ...]:
        """Return the concepts of these kinds in their order; of alternatives all."""
        found = (name for mark in self.marks for name in mark.names if concept(name).kind in kinds)
        return tuple(dict.fromkeys(found))

    def has(self, name: str) -> bool:
        return any(name in mark.names for mark in self.marks)

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do; `set` is left out beside anything more exact."""
        found = self.names("action")
        exact = tuple(name for name in found if name != "set")
        return exact or found

    @property
    def mood(self) -> Mood:
        """`query` when something is asked before anything is told, or when 吗 makes a question of it."""
        asked = [mark.start for mark in self.marks if "ask" in mark.names or self._asks_first(mark)]
        if self.has("polite"):
            asked = [start for start in asked if self.units[start].text not in _QUESTION_PARTICLES]
        if not asked:
            return "command"
        told = [mark.start for mark in self.marks if set(mark.names) & set(self.actions) - {"set"}]
        if told and min(told) < min(asked):
            return "query" if self.units[min(asked)].text in _QUESTION_PARTICLES else "command"
        valued = "set" in self.actions and self.numbers and min(asked) > 0
        return "command" if valued else "query"

    def _asks_first(self, mark: Mark) -> bool:
        return "ask_first" in mark.names and mark.start == 0

    def surface(self, mark: Mark) -> str:
        return self.text[self.units[mark.start].start : self.units[mark.end - 1].end]

    def rest(self) -> str:
        """Return the stretch of text from the first unknown word to the last one."""
        spots = [(unit.start, unit.end) for unit in self.words]
        found = ((self.text.find(run), len(run)) for run in self.runs)
        spots += [(start, start + length) for start, length in found if start >= 0]
        if not spots:
            return ""
        return self.text[min(start for start, _ in spots) : max(end for _, end in spots)]

    def with_actions_of(self, other: "Reading") -> "Reading":
        """Return this clause with the verb and the question of an earlier one: `turn on the fan and the light`."""
        if self.actions or self.mood == "query":
            return self
        lent = {"action", "mood"}
        borrowed = tuple(
            replace(mark, start=0, end=1) for mark in other.marks if concept(mark.names[0]).kind in lent and mark.end
        )
        return replace(self, marks=(*borrowed, *self.marks))


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Read one text."""
    simple = plain(text)
    units = cut(simple)
    marks = find_marks(units)
    taken = _taken(len(units), ((mark.start, mark.end) for mark in marks if not _measures(mark)))
    numbers = find_numbers(units, taken)
    counted = _taken(len(units), ((number.start, number.end) for number in numbers))
    marks = tuple(mark for mark in marks if not any(counted[mark.start : mark.end]))
    known = _taken(len(units), ((mark.start, mark.end) for mark in marks))
    free = [not (known[at] or counted[at] or unit.text in PAUSES) for at, unit in enumerate(units)]
    return Reading(
        simple,
        "zh" if has_han(simple) else "en",
        units,
        marks,
        numbers,
        tuple(unit for unit, open_ in zip(units, free, strict=True) if open_ and _is_word(unit)),
        _runs(units, free),
    )


def stem(word: str) -> str:
    """Return an English word without its commonest endings."""
    return _STEM.sub("", word) if len(word) > 4 else word


def sounds_of(run: str) -> frozenset[str]:
    """Return every pair of neighbouring characters by sound, by which unknown Chinese is compared; or the only one."""
    first = ["/".join(sorted(sounds(character))) for character in run]
    return frozenset(f"{one} {two}" for one, two in pairwise(first)) or frozenset(first)


def _measures(mark: Mark) -> bool:
    return bool(set(mark.names) & MEASURES)


def _taken(length: int, spans: Iterable[tuple[int, int]]) -> list[bool]:
    taken = [False] * length
    for start, end in spans:
        taken[start:end] = [True] * (end - start)
    return taken


def _is_word(unit: Unit) -> bool:
    return not unit.han and unit.text.isalpha() and unit.text not in stop_words()


def _runs(units: Sequence[Unit], free: Sequence[bool]) -> tuple[str, ...]:
    runs = [""]
    for at, unit in enumerate(units):
        inside = free[at] and unit.han and unit.text not in stop_characters()
        if inside:
            runs[-1] += unit.text
        elif runs[-1]:
            runs.append("")
    return tuple(run for run in runs if run)
