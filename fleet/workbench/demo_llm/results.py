"""What tools answered: whether it worked, and where in a nested result the asked value stands."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from pydantic import JsonValue

from fleet.workbench.demo_llm.reading import Reading, keys_of, read, spaced
from fleet.workbench.demo_llm.schemas import Scalar, number_in

Outcome = Literal["ok", "failed", "unknown"]

_FAILED = re.compile(
    r"\W*(?:tool )?(?:error|fail|exception|cannot|can't|could not|unable|invalid|missing|unknown tool|not.sent"
    r"|(?:not |un)available|no such|(?:device )?(?:is )?offline|busy|refused|denied|value (?:is below|exceeds)"
    r"|失败|错误|出错|无法|不支持|设备离线)",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"^\W*(?:error\W+)?(?:outcome )?(?:unknown(?! tool)|time.?d? ?out|no (?:answer|reply|response)|超时|没有回应|未知)"
    r"|may (?:or may not )?have (?:happened|worked|been)",
    re.IGNORECASE,
)
_PREFIX = re.compile(
    r"\W*(?:(?:error|fail(?:ed|ure)|time.?d? ?out|not.sent|exception)\s*[:：\-]\s*)?"
    r"(?:(?:not done|unknown whether it was done|unknown)\s*[,:：]\s*)?",
    re.IGNORECASE,
)
_TEXT_KEYS = ("response", "result", "answer", "text", "message", "description", "content", "output", "summary")
_REASON_KEYS = ("message", "error", "reason", "detail", "description")
_NOTHING = frozenset({"", "true", "ok", "okay", "done", "success", "null", "none", "{}", "[]", "成功"})
GENERAL_KEYS = frozenset({"level", "value", "state", "status", "type", "name", "signal", "strength", "percent", "mode"})
_MOST_LEAVES = 400


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a nested result, and the keys on the way to it."""

    path: tuple[str, ...]
    value: Scalar

    @property
    def own(self) -> Reading:
        return read(spaced(self.path[-1]))

    @property
    def above(self) -> Reading:
        return read(spaced(" ".join(self.path[:-1])))

    @property
    def number(self) -> float | None:
        return number_in(self.value)


@dataclass(frozen=True)
class ToolResult:
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
        data = self.data
        if not isinstance(data, dict):
            text = data if isinstance(data, str) else self.text
            return "unknown" if _UNKNOWN.search(text) else "failed" if data is False or _FAILED.match(text) else "ok"
        status = str(data.get("status", data.get("outcome"))).lower()
        denied = data.get("success") is False or data.get("ok") is False or data.get("isError") is True
        failed = denied or data.get("error") or status in {"error", "failed", "not_sent"}
        return "failed" if failed else "unknown" if status in {"unknown", "timeout"} else "ok"

    @property
    def reason(self) -> str:
        """Why it failed, in the tool's own words; empty when it does not say."""
        return _PREFIX.sub("", self._prose(_REASON_KEYS), count=1).strip()

    @property
    def speech(self) -> str:
        """The answer's prose, if it holds any."""
        return self._prose(_TEXT_KEYS)

    def _prose(self, keys: Sequence[str]) -> str:
        found = self.data
        while isinstance(found, dict):
            found = next((found[key] for key in keys if found.get(key)), "")
        return found.strip() if isinstance(found, str) and found.strip().lower() not in _NOTHING else ""

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """All single values, in their order, at most 400."""
        return tuple(islice(_walk(self.data, ()), _MOST_LEAVES))

    def find(self, reading: Reading) -> tuple[Leaf, ...]:
        """Return the values that the utterance asks for: the best matching ones, empty when none matches."""
        scores = [_relevance(reading, leaf) for leaf in self.leaves]
        best = max((1.0, *scores))
        return tuple(leaf for score, leaf in zip(scores, self.leaves, strict=True) if score == best)

    def number(self, *topics: str) -> float | None:
        """Return the number under a key of one of these concepts, or the only value."""
        numbers = [leaf for leaf in self.leaves if leaf.number is not None]
        near = [leaf for leaf in numbers if leaf.own.has(*topics)] or [one for one in numbers if one.above.has(*topics)]
        return near[0].number if near else number_in(self.data)


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
    own, above, key = keys_of(leaf.own), keys_of(leaf.above), set(leaf.own.text.lower().split())
    score = 2.0 * len(asked & own) + 1.5 * len(asked & (above - own)) + 0.5 * len(generic & (own | above))
    score += 2.0 * len(key & set(reading.words)) + 0.5 * len(key & set(re.findall(r"\w+", reading.text.lower())))
    amount = leaf.number is not None and re.search("how (?:much|many)|多少|多大|多高|几", reading.text.lower())
    return score + (0.25 if score >= 1 and amount else 0)
