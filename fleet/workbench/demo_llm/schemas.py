"""What an offered tool says about itself: the concepts of its name, its arguments and its description."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.workbench.demo_llm.lexicon import concept
from fleet.workbench.demo_llm.reading import Reading, read, sounds_of, stem
from fleet.workbench.demo_llm.units import has_han, spaced

PropertyKind = Literal["number", "boolean", "string", "other"]
Scalar = str | int | float | bool

IN_NAME, IN_PROPERTY, IN_CHOICE, IN_DESCRIPTION = 1.0, 0.95, 0.9, 0.75
LONGEST_DESCRIPTION = 4000
"""Characters of a tool's description that are read."""
_HARDLY = 0.4
_OFTEN_MENTIONED = frozenset({"time", "date"})
"""Descriptions speak of the time of a call or of a day without being about clocks."""
_QUOTED = re.compile(
    r"`(?P<tick>[^`\n]{1,24})`|\"(?P<double>[^\"\n]{1,24})\"|(?<!\w)'(?P<single>[^'\n]{1,24})'(?!\w)"
    r"|[“‘「『](?P<other>[^”’」』\n]{1,24})[”’」』]"
)
_GLOSSED = re.compile(r"([A-Za-z0-9_\-]{1,24})\s*[(（:：=]\s*([^\s,，;；)）(（:：=]{1,12})")
_EITHER = re.compile(r"\b([a-z0-9_\-]{2,16})\s+or\s+([a-z0-9_\-]{2,16})\b", re.IGNORECASE)
_READING_VERBS = re.compile(
    r"^\W*(?:provides?|returns?|reports?|tells?|gets?|reads?|quer(?:y|ies)|fetch(?:es)?|checks?|looks? up)\b"
    r"|^\W*(?:获取|返回|查询|提供|读取|查看)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One allowed value, and what it means."""

    value: Scalar
    concepts: frozenset[str]
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Property:
    """One argument of a tool."""

    name: str
    kind: PropertyKind
    whole: bool
    required: bool
    minimum: float | None
    maximum: float | None
    choices: tuple[Choice, ...]
    reading: Reading
    description: Reading

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.reading.names("topic", "generic", "place", "value", "color", "action")

    def fits(self, value: float) -> bool:
        """Return whether a number lies within the range, where there is one."""
        low, high = self.minimum, self.maximum
        return (low is None or low <= value) and (high is None or value <= high)

    def speaks_of(self, *names: str) -> bool:
        """Return whether the argument's name, or else its description, holds one of these concepts."""
        return any(self.reading.has(name) or self.description.has(name) for name in names)


@dataclass(frozen=True, slots=True)
class Tool:
    """An offered tool, understood."""

    name: str
    description: str
    properties: tuple[Property, ...]
    title: Reading
    strengths: Mapping[str, float]
    """How surely the tool is about a concept, an unknown word's stem or an unknown pair of sounds."""
    reads: bool
    """It answers a question and changes nothing."""

    @property
    def verbs(self) -> tuple[str, ...]:
        return self.title.names("action")

    @property
    def topics(self) -> tuple[str, ...]:
        return self.title.names("topic")

    @property
    def required(self) -> tuple[Property, ...]:
        return tuple(entry for entry in self.properties if entry.required)


def understand(name: str, description: str, parameters: Mapping[str, JsonValue]) -> Tool:
    """Return what a tool says about itself; odd schemas give fewer properties, never an error."""
    listed = parameters.get("properties")
    listed = listed if isinstance(listed, dict) else {}
    schemas = {key: value for key, value in listed.items() if isinstance(value, dict)}
    required = parameters.get("required")
    needed = {entry for entry in required if isinstance(entry, str)} if isinstance(required, list) else set()
    properties = tuple(_property(key, schema, key in needed) for key, schema in schemas.items())
    properties = _with_described_choices(properties, description)
    title = read(spaced(name))
    description = description[:LONGEST_DESCRIPTION]
    return Tool(
        name,
        description,
        properties,
        title,
        _strengths(title, properties, read(_without_quotes(description))),
        _reads(title, description, properties),
    )


def _property(name: str, schema: Mapping[str, JsonValue], required: bool) -> Property:
    schema = _flattened(schema)
    kind = schema.get("type")
    description = schema.get("description")
    text = description[:LONGEST_DESCRIPTION] if isinstance(description, str) else ""
    known: dict[str, PropertyKind] = {"integer": "number", "number": "number", "boolean": "boolean", "string": "string"}
    choices = _choices(_allowed(schema), text)
    return Property(
        name,
        known.get(kind, "other") if isinstance(kind, str) else ("string" if choices else "other"),
        kind == "integer",
        required,
        _limit(schema, "minimum"),
        _limit(schema, "maximum"),
        choices,
        read(spaced(name)),
        read(text),
    )


def _flattened(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Take the first variant that is not null, of `anyOf`, `oneOf` and lists of types."""
    for key in ("anyOf", "oneOf"):
        variants = schema.get(key)
        if isinstance(variants, list):
            real = [entry for entry in variants if isinstance(entry, dict) and entry.get("type") != "null"]
            schema = {**schema, **(real[0] if real else {})}
    kinds = schema.get("type")
    if isinstance(kinds, list):
        schema = {**schema, "type": next((kind for kind in kinds if kind != "null"), None)}
    return schema


def _allowed(schema: Mapping[str, JsonValue]) -> list[Scalar]:
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return [entry for entry in listed if isinstance(entry, str | int | float)] if isinstance(listed, list) else []


def _limit(schema: Mapping[str, JsonValue], key: str) -> float | None:
    value = schema.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _choices(values: Sequence[Scalar], description: str) -> tuple[Choice, ...]:
    glosses = {match[1].lower(): match[2] for match in _GLOSSED.finditer(description)}
    made = [_choice(value, glosses.get(str(value).lower(), "")) for value in values]
    if any("dark_mode" in choice.concepts for choice in made):
        made = [_as_appearance(choice) for choice in made]
    return tuple(made)


def _choice(value: Scalar, gloss: str) -> Choice:
    spelt = read(spaced(str(value)))
    meaning = read(f"{spaced(str(value))} {gloss}")
    words = tuple(unit.text for unit in spelt.units)
    return Choice(value, frozenset(meaning.names("topic", "place", "value", "color", "action", "generic")), words)


def _as_appearance(choice: Choice) -> Choice:
    """Beside `dark`, `light` is no lamp."""
    bright = {"light", "brightness"} & choice.concepts
    return replace(choice, concepts=choice.concepts - bright | {"light_mode"}) if bright else choice


def _with_described_choices(properties: tuple[Property, ...], description: str) -> tuple[Property, ...]:
    """Give string arguments without an enum the values that the texts name in quotes, as glosses or as `x or y`."""
    open_ = [entry for entry in properties if entry.kind == "string" and not entry.choices]
    names = {entry.name.lower() for entry in properties}
    made = {}
    for entry in open_:
        text = entry.description.text or (description if len(open_) == 1 else "")
        values = [value for value in _named_values(text) if value.lower() not in names]
        if len(values) > 1 and not has_han("".join(values)):
            made[entry.name] = replace(entry, choices=_choices(values, text))
    return tuple(made.get(entry.name, entry) for entry in properties)


def _named_values(text: str) -> list[str]:
    quoted = [match[match.lastgroup or 0].strip() for match in _QUOTED.finditer(text)]
    single = [value for value in quoted if re.fullmatch(r"[A-Za-z0-9_\-]+", value)]
    if len(single) > 1 and len(single) == len(quoted):
        return list(dict.fromkeys(single))
    glossed = [value for value, gloss in _GLOSSED.findall(text) if has_han(gloss) and not value.isdigit()]
    if len(glossed) > 1:
        return list(dict.fromkeys(glossed))
    either = _EITHER.search(text)
    return [either[1], either[2]] if either and _known_values(either.groups()) else []


def _known_values(words: Iterable[str]) -> bool:
    """Both words of `x or y` must be values, or the sentence only happens to hold an `or`."""
    kinds = [{concept(name).kind for mark in read(word).marks for name in mark.names} for word in words]
    return all(kind & {"value", "color", "action"} for kind in kinds) or (
        any("value" in kind for kind in kinds) and all(kinds)
    )


def _without_quotes(description: str) -> str:
    """Drop quoted values and names of other tools: they say nothing about this tool."""
    return re.sub(r"`[^`]*`|\b\w+(?:\.\w+)+\b", " ", description)


def _strengths(title: Reading, properties: Sequence[Property], description: Reading) -> Mapping[str, float]:
    found: dict[str, float] = {}
    _add(found, description, IN_DESCRIPTION)
    for entry in properties:
        _add(found, read(_without_quotes(entry.description.text)), IN_DESCRIPTION)
        for choice in entry.choices:
            found.update({name: max(IN_CHOICE, found.get(name, 0)) for name in choice.concepts})
        _add(found, entry.reading, IN_PROPERTY)
    _add(found, title, IN_NAME)
    return found


def _add(found: dict[str, float], text: Reading, strength: float) -> None:
    keys = {name for mark in text.marks for name in mark.names}
    keys |= {stem(unit.text) for unit in text.words}
    keys |= {pair for run in text.runs for pair in sounds_of(run)}
    for key in keys:
        sure = _HARDLY if key in _OFTEN_MENTIONED and strength == IN_DESCRIPTION else strength
        found[key] = max(sure, found.get(key, 0))


def _reads(title: Reading, description: str, properties: Sequence[Property]) -> bool:
    if title.names("action"):
        return False
    if title.has("get") or title.has("ask"):
        return True
    if title.has("status") and not any(entry.required for entry in properties):
        return True
    return _READING_VERBS.search(description) is not None


@lru_cache(maxsize=512)
def understood(name: str, description: str, parameters: str) -> Tool:
    """Return `understand` of parameters in JSON text; devices offer the same tools in every request."""
    return understand(name, description, from_json(parameters))
