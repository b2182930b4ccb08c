"""What tools answered: whether it worked, and where in a nested result the asked value stands."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from pydantic import JsonValue

from fleet.workbench.demo_llm.lexicon import concept
from fleet.workbench.demo_llm.reading import Reading, read
from fleet.workbench.demo_llm.schemas import Scalar
from fleet.workbench.demo_llm.units import spaced

Outcome = Literal["ok", "failed", "unknown"]

_FAILED = re.compile(
    r"^\W*(?:tool\s+)?(?:error|failed|failure|fail|exception|cannot|can't|could not|unable|invalid|missing|unknown tool"
    r"|not sent|not_sent|not available|unavailable|no such|device (?:is )?offline|offline|busy|refused|denied"
    r"|value (?:is below|exceeds)|失败|错误|出错|无法|不支持|设备离线)",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"^\W*(?:error\W+)?(?:outcome\s+)?"
    r"(?:unknown(?! tool)|timed? ?out|time-out|no (?:answer|reply|response)|超时|没有回应|未知)"
    r"|may (?:or may not )?have (?:happened|worked|been)",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"^\W*(?:(?:error|failed|failure|timeout|timed out|not_sent|not sent|exception)\s*[:：\-]\s*)?"
    r"(?:(?:not done|unknown whether it was done|unknown)\s*[,:：]\s*)?",
    re.IGNORECASE,
)
_TEXT_KEYS = ("response", "result", "answer", "text", "message", "description", "content", "output", "summary")
_REASON_KEYS = ("message", "error", "reason", "detail", "description")
_NOTHING = frozenset({"", "true", "ok", "okay", "done", "success", "null", "none", "{}", "[]", "成功"})
_GENERAL_KEYS = frozenset(
    {"level", "value", "state", "status", "type", "name", "signal", "strength", "percent", "mode"}
)
_MOST_LEAVES = 400


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a nested result, and the keys on the way to it."""

    path: tuple[str, ...]
    value: Scalar

    def concepts(self, depth: int) -> frozenset[str]:
        """Return the concepts of the last key (1) or of the keys above it (0)."""
        keys = self.path[-1:] if depth else self.path[:-1]
        return frozenset(name for key in keys for mark in read(spaced(key)).marks for name in mark.names)


@dataclass(frozen=True)
class ToolText:
    """A tool's answer as it arrived: JSON or prose."""

    text: str

    @cached_property
    def data(self) -> JsonValue:
        """The parsed answer, or the text itself when it is no JSON."""
        try:
            parsed: JsonValue = json.loads(self.text)
        except (ValueError, RecursionError):
            return self.text.strip()
        return parsed

    @cached_property
    def outcome(self) -> Outcome:
        if isinstance(self.data, dict):
            return self._outcome_of(self.data)
        text = str(self.data) if isinstance(self.data, str) else self.text
        if _UNKNOWN.search(text):
            return "unknown"
        return "failed" if self.data is False or _FAILED.search(text) else "ok"

    def _outcome_of(self, data: dict[str, JsonValue]) -> Outcome:
        denied = [data.get(key) for key in ("success", "ok")]
        if False in [entry for entry in denied if isinstance(entry, bool)] or data.get("isError") is True:
            return "failed"
        status = data.get("status", data.get("outcome"))
        if isinstance(status, str) and status.lower() in {"unknown", "timeout"}:
            return "unknown"
        failed = isinstance(status, str) and status.lower() in {"error", "failed", "not_sent"}
        return "failed" if failed or data.get("error") else "ok"

    @property
    def reason(self) -> str:
        """Why it failed, in the tool's own words; empty when it does not say."""
        found = self.data
        while isinstance(found, dict):
            found = next((found[key] for key in _REASON_KEYS if found.get(key)), "")
        return _PREFIX.sub("", found).strip() if isinstance(found, str) and found.lower() not in _NOTHING else ""

    @property
    def speech(self) -> str:
        """The answer's prose, if it holds any."""
        found = self.data
        while isinstance(found, dict):
            found = next((found[key] for key in _TEXT_KEYS if found.get(key)), "")
        text = found if isinstance(found, str) else ""
        return "" if text.strip().lower() in _NOTHING else text.strip()

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All single values, in their order, at most 400."""
        found: list[Leaf] = []
        for leaf in _walk(self.data, ()):
            found.append(leaf)
            if len(found) == _MOST_LEAVES:
                break
        return tuple(found)

    def find(self, reading: Reading) -> tuple[Leaf, ...]:
        """Return the values that the utterance asks for: the best matching ones, empty when none matches."""
        scored = [(_relevance(reading, leaf), leaf) for leaf in self.leaves]
        best = max((score for score, _ in scored), default=0.0)
        return tuple(leaf for score, leaf in scored if score == best) if best >= 1 else ()

    def number(self, *topics: str) -> float | None:
        """Return the number under a key of one of these concepts."""
        numbers = [leaf for leaf in self.leaves if _is_number(leaf.value)]
        for depth in (1, 0):
            for leaf in numbers:
                if leaf.concepts(depth) & set(topics):
                    return float(leaf.value)
        return float(self.data) if isinstance(self.data, int | float) and not isinstance(self.data, bool) else None


def label_keys(path: Sequence[str]) -> tuple[str, ...]:
    """Return the keys worth saying: a general one such as `level` needs the one above it."""
    general = len(path) > 1 and spaced(path[-1]).lower() in _GENERAL_KEYS
    return tuple(path[-2:] if general else path[-1:])


def _is_number(value: Scalar) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _walk(value: JsonValue, path: tuple[str, ...]) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, path)
    elif value is not None and path:
        yield Leaf(path, value)


def _relevance(reading: Reading, leaf: Leaf) -> float:
    asked = set(reading.names("topic", "place", "value"))
    generic = set(reading.names("generic")) - {"device", "status"}
    own, above = leaf.concepts(1), leaf.concepts(0)
    known = {name for name in own | above if concept(name).kind != "filler"}
    score = 2.0 * len(asked & own) + 1.5 * len(asked & (above - own)) + 0.5 * len(generic & known)
    said = {unit.text for unit in reading.units}
    key = {unit.text for unit in read(spaced(leaf.path[-1])).units}
    score += 2.0 * len({unit.text for unit in reading.words} & key) + 0.5 * len(said & key)
    wants_number = any(word in reading.text.lower() for word in _AMOUNT_WORDS)
    return score + (0.25 if score >= 1 and wants_number and _is_number(leaf.value) else 0)


_AMOUNT_WORDS = ("how much", "how many", "多少", "多大", "多高", "几")
