"""Role play: the model plays a character from a file until the user wants it to stop."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTool
from fleet.ground.errors import ConfigError

MOST = 100
"""Characters in a file."""
_LONGEST_NAME = 64
_LONGEST_PROMPT = 4_000

_Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME)]


class Character(BaseModel):
    """One role: `name` and `names` are its names for users, `prompt` is the instruction for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)
    name: _Name
    names: tuple[_Name, ...] = ()
    description: Annotated[str, Field(max_length=500)]
    prompt: Annotated[str, Field(min_length=1, max_length=_LONGEST_PROMPT)]

    @property
    def called(self) -> tuple[str, ...]:
        return (self.name, *self.names)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    character: Annotated[list[Character], Field(min_length=1, max_length=MOST)]


def read_characters(path: Path | None) -> tuple[Character, ...]:
    """Return the characters of a file; without a file those that are part of fleet.

    Raises:
        ConfigError: The file cannot be read or is invalid; the message names the fault and its place.
    """
    try:
        text = path.read_text(encoding="utf-8") if path else _packaged()
        found = _File.model_validate(tomllib.loads(text)).character
    except ValidationError as error:
        raise ConfigError(f"FLEET_CHARACTERS: {path}: {_explain(error)}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"FLEET_CHARACTERS: {path}: {error}") from error
    names = [_plain(name) for character in found for name in dict.fromkeys(character.called)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"FLEET_CHARACTERS: {path}: two characters are called {', '.join(twice)}")
    return tuple(found)


def _packaged() -> str:
    return (files("fleet.adapters.tools") / "characters.toml").read_text(encoding="utf-8")


def _explain(error: ValidationError) -> str:
    fault: Any = error.errors()[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _plain(name: str) -> str:
    return "".join(name.casefold().split())


@dataclass(frozen=True, slots=True)
class RolePlay:
    """The characters, and the tools for role play."""

    characters: Sequence[Character]

    def tools(self) -> tuple[ServerTool, ...]:
        session: dict[str, JsonValue] = {"type": "string", "description": "Leave it out: it is the present session."}
        return (
            built_in(
                "enter_roleplay_mode",
                "Begin to play a character when the user asks for role play or for a certain character. "
                f"There are: {self._listed()}.",
                self._enter,
                repeatable=True,
                character={"type": "string", "description": "Its name.", "required": True},
                session_id=session,
            ),
            built_in(
                "exit_roleplay_mode",
                "Stop playing a character and answer as the usual assistant again.",
                self._exit,
                repeatable=True,
                session_id=session,
            ),
            built_in(
                "get_roleplay_status",
                "Tell which character is played now.",
                self._status,
                repeatable=True,
                session_id=session,
            ),
            built_in(
                "list_available_characters", "List the characters that can be played.", self._list, repeatable=True
            ),
        )

    def introduce(self, persona: Persona) -> str:
        """Return the sentence of the system prompt about the present role; empty if there is none."""
        character = self.find(persona.character)
        if character is None:
            return ""
        return (
            f"You play the character {character.name}, and stay in that role until the user wants it to end "
            f"(exit_roleplay_mode): {character.prompt}"
        )

    def find(self, name: str) -> Character | None:
        """Return the character with this name, or the only one that has a similar name; None if none or several fit."""
        wanted = _plain(name)
        if not wanted:
            return None
        exact = [one for one in self.characters if wanted in map(_plain, one.called)]
        near = exact or [one for one in self.characters if any(_alike(wanted, _plain(own)) for own in one.called)]
        return near[0] if len(near) == 1 else None

    async def _enter(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        name = text_of(arguments, "character")
        character = self.find(name)
        if character is None:
            return failed(f"there is no character {name[:_LONGEST_NAME]!r}; there are {self._listed()}")
        caller.persona = replace(caller.persona, character=character.name)
        note = f"From this answer on, play this role: {character.prompt}"
        return ServerResult(self._describe_state(caller) | {"note": note})

    async def _exit(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        left = caller.persona.character
        caller.persona = replace(caller.persona, character="")
        note = "Answer as the usual assistant from now on." if left else "No character was played."
        return ServerResult(self._describe_state(caller) | {"left": left or None, "note": note})

    async def _status(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        return ServerResult(self._describe_state(caller))

    async def _list(self, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        return ServerResult({"characters": [_describe(one) for one in self.characters]})

    def _describe_state(self, caller: Caller) -> dict[str, JsonValue]:
        """Return whether a role is played. The session is always the caller's, not the one in the model's arguments."""
        character = self.find(caller.persona.character)
        about = {"character": None} if character is None else {"character": character.name}
        return {"active": character is not None, **about, "session_id": caller.session}

    def _listed(self) -> str:
        return ", ".join("/".join(one.called[:2]) for one in self.characters)


def _alike(one: str, other: str) -> bool:
    return min(len(one), len(other)) > 1 and (one in other or other in one)


def _describe(character: Character) -> dict[str, JsonValue]:
    return {"name": character.name, "names": list(character.names), "description": character.description}
