"""Finding concepts in units: the longest known phrase first, then what only sounds or looks like one."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fleet.workbench.demo_llm.concepts import Concept, compounds, concepts
from fleet.workbench.demo_llm.pinyin import loose_sounds, sound_alike, sounds
from fleet.workbench.demo_llm.units import PAUSES, Unit, cut

Phrase = tuple[str, ...]
Language = Literal["en", "zh"]

EXACT = 1.0
ALIKE = 0.8
_SHORTEST_FUZZY_WORD = 6
_PARTICLES = frozenset({"on", "off", "up", "down"})
_DETERMINERS = frozenset({"the", "my", "this", "that", "your", "our", "what", "which"})
_FIRST_HAN = "\u3400"
_COUNTING = frozenset("零一二三四五六七八九十百千万两半几")
_NOUN_FRAMES = frozenset({"的", "开", "关", "闭", "掉"})


@dataclass(frozen=True, slots=True)
class Mark:
    """Concepts found in units `start` up to `end`. Several names are alternatives for the same words."""

    names: tuple[str, ...]
    start: int
    end: int
    quality: float = EXACT


@dataclass(frozen=True, slots=True)
class _Entry:
    alternatives: tuple[str, ...]
    implied: tuple[str, ...] = ()

    def marks(self, start: int, end: int, quality: float) -> Iterator[Mark]:
        if self.alternatives:
            yield Mark(self.alternatives, start, end, quality)
        for name in self.implied:
            yield Mark((name,), start, end, quality)


def concept(name: str) -> Concept:
    return concepts()[name]


def label(name: str, language: Language) -> str:
    """Return a concept in words."""
    known = concepts()[name]
    return known.label_zh if language == "zh" else known.label_en


def find_marks(units: Sequence[Unit]) -> tuple[Mark, ...]:
    """Return the concepts in the order of the units; no unit belongs to two phrases."""
    words = tuple(unit.text for unit in units)
    marks: list[Mark] = []
    taken = [unit.text in PAUSES for unit in units]
    for search in (_exact_phrase, _alike_phrase, _exact, _alike_word):
        at = 0
        while at < len(units):
            found = None if taken[at] else search(words, at)
            if found is None or any(taken[at : found[1]]):
                at += 1
                continue
            entry, end, quality = found
            marks.extend(entry.marks(at, end, quality))
            taken[at:end] = [True] * (end - at)
            at = end
    return tuple(sorted(marks, key=lambda mark: (mark.start, mark.end)))


_Found = tuple[_Entry, int, float]


def _exact(words: Phrase, at: int) -> _Found | None:
    for phrase, entry in _by_first_unit().get(words[at], ()):
        end = at + len(phrase)
        if words[at:end] == phrase and not _preposition(words, at, end):
            return entry, end, EXACT
    return None


def _exact_phrase(words: Phrase, at: int) -> _Found | None:
    found = _exact(words, at)
    return found if found and found[1] - at > 1 else None


def _preposition(words: Phrase, at: int, end: int) -> bool:
    """Tell `on the screen` from `turn the screen on`."""
    return end - at == 1 and words[at] in _PARTICLES and end < len(words) and words[end] in _DETERMINERS


def _alike_phrase(words: Phrase, at: int) -> _Found | None:
    if words[at] < _FIRST_HAN or _makes_sense(words[at : at + 2]):
        return None
    for phrase, entry in _phrases_sounding_like(words[at]):
        end = at + len(phrase)
        heard = words[at:end]
        if len(heard) == len(phrase) and not _COUNTING & set(heard) and sound_alike("".join(phrase), "".join(heard)):
            return entry, end, ALIKE
    return None


def _makes_sense(heard: Phrase) -> bool:
    """Keep `灯关` from being taken for 灯光."""
    return all((character,) in _phrases() for character in heard)


def _alike_word(words: Phrase, at: int) -> _Found | None:
    return _misspelt(words, at) if words[at] < _FIRST_HAN else _noun_by_sound(words, at)


def _misspelt(words: Phrase, at: int) -> _Found | None:
    word = words[at]
    if len(word) < _SHORTEST_FUZZY_WORD:
        return None
    for known, entry in _long_words():
        if _one_edit_apart(word, known):
            return entry, at + 1, ALIKE
    return None


def _noun_by_sound(words: Phrase, at: int) -> _Found | None:
    """Take one character for a noun only where a noun must stand: `打开客厅的动` asks for 灯."""
    if at == 0 or words[at - 1] not in _NOUN_FRAMES or not _ends_noun(words, at + 1):
        return None
    for character, entry in _single_nouns():
        if loose_sounds(character) & loose_sounds(words[at]):
            return entry, at + 1, ALIKE
    return None


def _ends_noun(words: Phrase, at: int) -> bool:
    return at == len(words) or words[at] in PAUSES or words[at] in {"吧", "打", "关", "开"}


def _one_edit_apart(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, other_rest = one[start:], other[start:]
    return rest[1:] == other_rest[1:] or rest[1:] == other_rest or rest == other_rest[1:]


@cache
def _phrases() -> dict[Phrase, _Entry]:
    alternatives: defaultdict[Phrase, list[str]] = defaultdict(list)
    for known in concepts().values():
        for phrase in known.phrases:
            alternatives[_units_of(phrase)].append(known.name)
    table = {phrase: _Entry(tuple(dict.fromkeys(names))) for phrase, names in alternatives.items()}
    for compound in compounds():
        for phrase in (*compound.en, *compound.zh):
            table[_units_of(phrase)] = _Entry((), compound.means)
    return table


def _units_of(phrase: str) -> Phrase:
    return tuple(unit.text for unit in cut(phrase))


@cache
def _by_first_unit() -> dict[str, tuple[tuple[Phrase, _Entry], ...]]:
    table: defaultdict[str, list[tuple[Phrase, _Entry]]] = defaultdict(list)
    for phrase, entry in sorted(_phrases().items(), key=lambda item: -len(item[0])):
        table[phrase[0]].append((phrase, entry))
    return {first: tuple(entries) for first, entries in table.items()}


@cache
def _phrases_sounding_like(character: str) -> tuple[tuple[Phrase, _Entry], ...]:
    """Return the Chinese phrases whose first character sounds like this one."""
    return tuple((phrase, entry) for phrase, entry in _spoken_phrases() if sounds(phrase[0]) & sounds(character))


@cache
def _spoken_phrases() -> tuple[tuple[Phrase, _Entry], ...]:
    """Return the Chinese phrases that are long enough for equal sounds to be no accident."""
    spoken = [(p, e) for p, e in _phrases().items() if len(p) > 1 and all(c >= _FIRST_HAN for c in p) and _sounded(e)]
    return tuple(sorted(spoken, key=lambda item: -len(item[0])))


def _sounded(entry: _Entry) -> bool:
    return all(concept(name).kind not in {"filler", "mood"} for name in entry.alternatives)


@cache
def _single_nouns() -> tuple[tuple[str, _Entry], ...]:
    return tuple(
        (p[0], e)
        for p, e in _phrases().items()
        if len(p) == 1 and p[0] >= _FIRST_HAN and any(concept(name).kind == "topic" for name in e.alternatives)
    )


@cache
def _long_words() -> tuple[tuple[str, _Entry], ...]:
    return tuple(
        (p[0], e)
        for p, e in _phrases().items()
        if len(p) == 1 and len(p[0]) >= _SHORTEST_FUZZY_WORD and p[0].isascii() and _sounded(e)
    )
