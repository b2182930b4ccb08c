"""The general words of `words.toml`: concepts, compounds, stop words and small talk, read once and checked."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

Kind = Literal["topic", "generic", "place", "action", "value", "color", "filler", "mood"]
COLORS: dict[str, tuple[int, int, int]] = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "pink": (255, 105, 180),
    "white": (255, 255, 255),
    "cyan": (0, 255, 255),
}


@dataclass(frozen=True, slots=True)
class Concept:
    """One meaning: its words in both languages, and the words to say it with."""

    name: str
    kind: Kind
    phrases: tuple[str, ...]
    label_en: str
    label_zh: str


def _split(value: object) -> object:
    return [phrase for phrase in value.split("|") if phrase] if isinstance(value, str) else value


_Phrases = Annotated[tuple[str, ...], BeforeValidator(_split)]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    en: _Phrases = ()
    zh: _Phrases = ()


class _Row(_Words):
    label: str = ""


class Compound(_Words):
    """Phrases that each mean several concepts at once."""

    means: tuple[str, ...]


class SmallTalk(_Words):
    """Phrases of one intent, how many further words may stand around them, and the answers."""

    extra: int
    reply_en: str = ""
    reply_zh: str = ""


class _Stop(BaseModel):
    en: str
    zh: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    topic: dict[str, _Row]
    generic: dict[str, _Row]
    place: dict[str, _Row]
    action: dict[str, _Row]
    value: dict[str, _Row]
    color: dict[str, _Row]
    mood: dict[str, _Row]
    filler: dict[str, _Row]
    compound: tuple[Compound, ...]
    stop: _Stop
    talk: dict[str, SmallTalk]


@cache
def _file() -> _File:
    text = resources.files("fleet.workbench.demo_llm").joinpath("words.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


@cache
def concepts() -> dict[str, Concept]:
    """Return every concept by its name."""
    file = _file()
    kinds: tuple[tuple[Kind, dict[str, _Row]], ...] = (
        ("topic", file.topic),
        ("generic", file.generic),
        ("place", file.place),
        ("action", file.action),
        ("value", file.value),
        ("color", file.color),
        ("mood", file.mood),
        ("filler", file.filler),
    )
    return {name: _concept(name, kind, row) for kind, rows in kinds for name, row in rows.items()}


def compounds() -> tuple[Compound, ...]:
    return _file().compound


def small_talk() -> dict[str, SmallTalk]:
    """Return the intents of small talk, in the order in which they are tried."""
    return _file().talk


@cache
def stop_words() -> frozenset[str]:
    return frozenset(_file().stop.en.split())


@cache
def stop_characters() -> frozenset[str]:
    return frozenset(_file().stop.zh)


def _concept(name: str, kind: Kind, row: _Row) -> Concept:
    label = row.label or (row.zh[0] if row.zh else name)
    return Concept(name, kind, (*row.en, *row.zh), name.replace("_", " "), label)
