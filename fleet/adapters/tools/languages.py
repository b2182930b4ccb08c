"""The tools that set and show the language of the model's answers."""

from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from fleet.adapters.tools.tool import built_in, failed, text_of
from fleet.core.server_tools import Caller, Persona, ServerResult, ServerTool

LANGUAGES: Final = {
    "zh": ("Chinese", "中文"),
    "en": ("English", "English"),
    "ja": ("Japanese", "日本語"),
    "ko": ("Korean", "한국어"),
    "de": ("German", "Deutsch"),
    "fr": ("French", "Français"),
    "ru": ("Russian", "Русский"),
    "pt": ("Portuguese", "Português"),
    "es": ("Spanish", "Español"),
    "it": ("Italian", "Italiano"),
}
"""Code, English name and own name of each language that answers can be set to."""


def language_tools() -> tuple[ServerTool, ...]:
    """Return the tools that set the language, show it, and list all languages."""
    return (
        built_in(
            "set_response_language",
            "Set the language of all further answers to the user, until it is set anew. Use it when the user asks for "
            "answers in a certain language, not for a single translation.",
            _set,
            repeatable=True,
            language={"type": "string", "enum": list(LANGUAGES), "description": "Its code.", "required": True},
        ),
        built_in("get_response_language", "Tell which language the answers are set to.", _get, repeatable=True),
        built_in("list_supported_languages", "List the languages that answers can be set to.", _list, repeatable=True),
    )


def introduce_language(persona: Persona) -> str:
    """Return the sentence of the system prompt about the language; empty if none is set."""
    if not persona.language:
        return ""
    names = LANGUAGES.get(persona.language, ("the language of this ISO 639 code", persona.language))
    return f"The user has set the language: answer in {names[0]} ({names[1]}) only, whatever language the user speaks."


async def _set(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
    code = text_of(arguments, "language").lower()
    if code not in LANGUAGES:
        return failed(f"the language {code[:20]!r} is not supported; there are {', '.join(LANGUAGES)}")
    caller.persona = replace(caller.persona, language=code)
    return ServerResult(_describe(code) | {"note": f"Answer in {LANGUAGES[code][0]} from now on."})


async def _get(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
    code = caller.persona.language
    if code not in LANGUAGES:
        return ServerResult({"language": None, "note": "None is set: answers are in the user's own language."})
    return ServerResult(_describe(code))


async def _list(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
    return ServerResult({"languages": [_describe(code) for code in LANGUAGES]})


def _describe(code: str) -> dict[str, JsonValue]:
    name, own = LANGUAGES[code]
    return {"language": code, "name": name, "own_name": own}
