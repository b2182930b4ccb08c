"""One utterance or one text of a schema, read once: its language, concepts, numbers, and the words nobody knows."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise

from fleet.workbench.demo_llm.numbers import Number, find_numbers
from fleet.workbench.demo_llm.words import HAN, Language, Meaning, concept, dictionary, sound

PAUSES = ",.。;!?、:"
CHANGES = frozenset({"increase", "decrease"})
MEASURES = frozenset({"minute", "second", "hour", "degree", "percent"})
_USED = "\0"
_PARTICLES = frozenset("吗呢")
_COUNTING = re.compile("[零一二三四五六七八九十百千万两半几]")
# A noun must stand here: `打开客厅的动` asks for 灯
_NOUN_PLACE = re.compile(f"(?<=[的\0])[{HAN}](?=$|[{PAUSES}吧\0])")


@dataclass(frozen=True, slots=True)
class Mark:
    """Concepts between the characters `start` and `end`. Several names are alternatives for the same words."""

    names: tuple[str, ...]
    start: int
    end: int

    @property
    def kind(self) -> str:
        return concept(self.names[0]).kind


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as it was understood. `words` are unknown English words, `runs` unknown Chinese ones."""

    text: str
    language: Language
    marks: tuple[Mark, ...]
    numbers: tuple[Number, ...]
    words: tuple[str, ...]
    runs: tuple[str, ...]

    def names(self, *kinds: str) -> tuple[str, ...]:
        """Return the concepts of these kinds in their order; of alternatives all."""
        found = (name for mark in self.marks for name in mark.names if concept(name).kind in kinds)
        return tuple(dict.fromkeys(found))

    def has(self, *names: str) -> bool:
        return any(name in mark.names for mark in self.marks for name in names)

    @property
    def actions(self) -> tuple[str, ...]:
        """What to do; `set` is left out beside anything more exact."""
        found = self.names("action")
        return tuple(name for name in found if name != "set") or found

    @property
    def asks(self) -> bool:
        """Whether something is asked before anything is demanded, or 吗 makes a question of it."""
        asked = [mark for mark in self.marks if "ask" in mark.names or ("ask_first" in mark.names and not mark.start)]
        if self.has("polite"):
            asked = [mark for mark in asked if self.surface(mark) not in _PARTICLES]
        if not asked:
            return False
        exact = set(self.actions) - {"set"}
        if any(exact & set(mark.names) and mark.start < asked[0].start for mark in self.marks):
            return self.surface(asked[0]) in _PARTICLES
        return True

    def surface(self, mark: Mark) -> str:
        return self.text[mark.start : mark.end]

    def rest(self) -> str:
        """Return the stretch of text from the first unknown word to the last one."""
        spots = [(self.text.lower().find(found), len(found)) for found in (*self.words, *self.runs)]
        return self.text[min(at for at, _ in spots) : max(at + size for at, size in spots)] if spots else ""

    def with_actions_of(self, other: "Reading") -> "Reading":
        """Return this clause with the verb and the question of an earlier one: `turn on the fan and the light`."""
        if self.actions or self.asks:
            return self
        lent = tuple(replace(mark, start=0, end=0) for mark in other.marks if mark.kind in {"action", "mood"})
        return replace(self, marks=(*lent, *self.marks))


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Read one text; of an identifier (`self.lamp.turn_on`, `turnOn`) `spaced` makes one."""
    plain = re.sub(r"\b([ap])\. ?m\b\.?", r"\1m", unicodedata.normalize("NFKC", text), flags=re.IGNORECASE)
    plain = re.sub(r"\s+", " ", plain).strip()
    # Of the same length, so that what is found there can be cut from the text as it was said
    left = "".join(letter.lower() if len(letter.lower()) == 1 else " " for letter in plain)
    left = whole = re.sub(r"['’_]|(?<=[a-z])-(?=[a-z])", " ", left)
    marks: list[Mark] = []
    numbers: list[Number] = []
    for search in (_phrases(dictionary().long), _alike, _numbers, _phrases(dictionary().short), _misheard):
        for found, start, end in search(whole if search is _numbers else left):
            if _USED in left[start:end]:
                continue
            left = left[:start] + _USED * (end - start) + left[end:]
            if isinstance(found, Number):
                numbers.append(found)
            else:
                marks.extend(Mark(names, start, end) for names in found)
    words = (word for word in re.findall(rf"[^\W\d_{HAN}]+", left) if word not in dictionary().stop_words)
    runs = re.findall(f"[{HAN}]+", re.sub(f"[{dictionary().stop_characters}]", " ", left))
    language: Language = "zh" if re.search(f"[{HAN}]", plain) else "en"
    ordered = sorted(marks, key=lambda mark: mark.start)
    return Reading(plain, language, tuple(ordered), tuple(numbers), tuple(words), tuple(runs))


def spaced(name: str) -> str:
    return re.sub("(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", re.sub(r"[_.\-/:]+", " ", name))


def keys_of(text: Reading) -> frozenset[str]:
    """Return everything a text can be compared by: concepts, stems of unknown words, sounds of unknown Chinese."""
    marked = {name for mark in text.marks for name in mark.names}
    return frozenset(marked | {stem(word) for word in text.words} | {pair for run in text.runs for pair in sounds(run)})


def stem(word: str) -> str:
    """Return an English word without its commonest endings."""
    return re.sub("(?:ing|ed|es|s|er)$", "", word) if len(word) > 4 else word


def sounds(run: str) -> frozenset[str]:
    """Return every pair of neighbouring characters by sound; the only character when there is but one."""
    heard = [sound(character) for character in run]
    return frozenset(f"{one} {two}" for one, two in pairwise(heard)) or frozenset(heard)


_Found = tuple[Meaning | Number, int, int]


def _phrases(known: re.Pattern[str]) -> Callable[[str], Iterator[_Found]]:
    return lambda left: ((dictionary().phrases[found.group()], *found.span()) for found in known.finditer(left))


def _numbers(whole: str) -> Iterator[_Found]:
    # A number's unit may be understood already
    for number in find_numbers(whole):
        yield number, number.start, number.end


def _alike(left: str) -> Iterator[_Found]:
    """Find phrases that only sound like what was heard; two characters that make sense alone are left to themselves."""
    known = dictionary().phrases
    for run in re.finditer(f"[{HAN}]{{2,}}", left):
        for start in range(run.start(), run.end() - 1):
            ends = range(min(run.end(), start + 5), start + 1, -1)
            for end in () if left[start] in known and left[start + 1] in known else ends:
                meaning = dictionary().by_sound.get(tuple(map(sound, left[start:end])))
                if meaning and not _COUNTING.search(left, start, end):
                    yield meaning, start, end


def _misheard(left: str) -> Iterator[_Found]:
    """Find English words that are misspelt, and single Chinese nouns by their sound."""
    for found in re.finditer("[a-z]{6,}", left):
        close = get_close_matches(found.group(), dictionary().misspelt, 1, 0.83)
        if close and close[0][0] == found.group()[0] and found.group() not in dictionary().stop_words:
            yield dictionary().phrases[close[0]], *found.span()
    for found in _NOUN_PLACE.finditer(left):
        meaning = dictionary().nouns_by_sound.get(sound(found.group(), loose=True))
        if meaning and found.group() not in dictionary().stop_characters:
            yield meaning, *found.span()
