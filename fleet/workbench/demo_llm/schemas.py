"""What an offered tool says about itself: the concepts of its name, its arguments and its description."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pydantic import JsonValue
from pydantic_core import from_json

from fleet.workbench.demo_llm.reading import Reading, keys_of, read, spaced
from fleet.workbench.demo_llm.words import dictionary

Scalar = str | int | float | bool

IN_NAME, IN_PROPERTY, IN_CHOICE, IN_DESCRIPTION = 1.0, 0.95, 0.9, 0.75
LONGEST_DESCRIPTION = 4000
"""Characters of a description that are read."""
_QUOTED = re.compile(r"(?<!\w)([`\"'])([A-Za-z0-9_\-]{1,24})\1(?!\w)")
_BEGINS_READ_ONLY = re.compile(
    r"\W*(?:(?:provide|return|report|tell|get|read|query|fetch|check|list|look up)(?:e?s)?\b"
    r"|获取|返回|查询|提供|读取|查看)",
    re.IGNORECASE,
)
"""Beginning of the description of a tool that answers a question and changes nothing."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One allowed value, and what it means."""

    value: Scalar
    concepts: frozenset[str]


@dataclass(frozen=True, slots=True)
class Property:
    """One argument of a tool; `kind` is its type in JSON schema or number, `title` its name as words."""

    name: str
    kind: str
    whole: bool
    required: bool
    minimum: float | None
    maximum: float | None
    choices: tuple[Choice, ...]
    title: Reading
    description: Reading

    @property
    def concepts(self) -> tuple[str, ...]:
        return self.title.names("topic", "generic", "place", "value", "color", "action")

    def fit(self, value: float) -> int | float:
        """Return the number within the range, whole where it must be."""
        value = value if self.minimum is None else max(value, self.minimum)
        value = value if self.maximum is None else min(value, self.maximum)
        return round(value) if self.whole or value == int(value) else round(value, 3)

    def speaks_of(self, *names: str) -> bool:
        """Return whether the argument's name or description holds one of these concepts."""
        return self.title.has(*names) or self.description.has(*names)


@dataclass(frozen=True, slots=True)
class Tool:
    """An offered tool, understood; `title` is its name as words."""

    name: str
    description: str
    properties: tuple[Property, ...]
    title: Reading
    strengths: Mapping[str, float]
    """How surely the tool is about a key, from 0 to 1. A key is a concept, the stem of an English word that the
    dictionary lacks, or two neighbouring Chinese characters that it lacks, as sounds (`reading.keys_of`)."""
    read_only: bool
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

    @property
    def tells_everything(self) -> bool:
        """It reports the status of the whole device."""
        return self.read_only and self.title.has("status") and not self.topics


@lru_cache(maxsize=512)
def understand(name: str, description: str, parameters: str) -> Tool:
    """Return what a tool says about itself; odd schemas give fewer properties, never an error.

    Args:
        name: Its name.
        description: What it says it does.
        parameters: JSON schema of its arguments, as JSON: devices offer the same tools in every request.
    """
    schema = from_json(parameters)
    listed, required = schema.get("properties"), schema.get("required")
    entries = {key: _flat(entry) for key, entry in _mapping(listed).items() if isinstance(entry, dict)}
    needed = required if isinstance(required, list) else []
    description = description[:LONGEST_DESCRIPTION]
    # Some tools quote the values of their only text argument in their own description.
    fallback_text = description if sum(entry.get("type") == "string" for entry in entries.values()) == 1 else ""
    properties = tuple(_property(key, entry, key in needed, fallback_text) for key, entry in entries.items())
    title = read(spaced(name))
    named = title.has("get", "ask") or (title.has("status") and not any(entry.required for entry in properties))
    read_only = not title.names("action") and (named or _BEGINS_READ_ONLY.match(description) is not None)
    return Tool(name, description, properties, title, _strengths(title, properties, description), read_only)


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _flat(schema: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Take the first variant that is not null, of `anyOf` and `oneOf`."""
    variants = schema.get("anyOf", schema.get("oneOf"))
    real = [_mapping(entry) for entry in variants] if isinstance(variants, list) else []
    return {**schema, **next((entry for entry in real if entry.get("type") != "null"), {})}


def _property(name: str, schema: Mapping[str, JsonValue], required: bool, fallback_text: str) -> Property:
    described = schema.get("description")
    text = described[:LONGEST_DESCRIPTION] if isinstance(described, str) else ""
    kind = str(schema.get("type", "string" if "enum" in schema else ""))
    whole, low, high = kind == "integer", number_in(schema.get("minimum")), number_in(schema.get("maximum"))
    kind = "number" if whole else kind
    choices = _choices(name, schema, text or fallback_text if kind == "string" else "")
    return Property(name, kind, whole, required, low, high, choices, read(spaced(name)), read(text))


def number_in(value: JsonValue) -> float | None:
    """Return a value of JSON if it is a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _choices(name: str, schema: Mapping[str, JsonValue], text: str) -> tuple[Choice, ...]:
    """Return the allowed values: those listed, or at least two that the text quotes."""
    listed = schema.get("enum")
    values = [entry for entry in listed if isinstance(entry, str | int | float)] if isinstance(listed, list) else []
    quoted = dict.fromkeys(value for _, value in _QUOTED.findall(text) if value.lower() != name.lower())
    made = [Choice(value, _meaning(str(value))) for value in values or (quoted if len(quoted) > 1 else ())]
    dark = any("dark_mode" in choice.concepts for choice in made)
    # Beside `dark`, `light` is no lamp
    return tuple(Choice(one.value, frozenset({"light_mode"})) if dark and one.value == "light" else one for one in made)


def _meaning(value: str) -> frozenset[str]:
    coded = {f"language_{value}"} & dictionary().concepts.keys()
    return frozenset(coded or read(spaced(value)).names("topic", "place", "value", "color", "action", "generic"))


def _strengths(title: Reading, properties: Iterable[Property], description: str) -> Mapping[str, float]:
    texts = [(description, IN_DESCRIPTION)] + [(entry.description.text, IN_DESCRIPTION) for entry in properties]
    # Quoted values and names of other tools say nothing about this tool
    found = [(keys_of(read(re.sub(r"`[^`]*`|\b\w+(?:\.\w+)+\b", " ", text))), strength) for text, strength in texts]
    found += [(choice.concepts, IN_CHOICE) for entry in properties for choice in entry.choices]
    found += [(keys_of(entry.title), IN_PROPERTY) for entry in properties]
    strengths: dict[str, float] = {}
    for keys, strength in (*found, (keys_of(title), IN_NAME)):
        for key in keys:
            strengths[key] = max(strength, strengths.get(key, 0))
    return strengths
