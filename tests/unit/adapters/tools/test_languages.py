from typing import Any

import pytest

from fleet.adapters.tools.languages import LANGUAGES, introduce_language, language_tools
from fleet.core.server_tools import Caller, Persona

SET, GET, LIST = language_tools()


async def test_the_ten_languages_of_the_document_are_listed() -> None:
    listed: Any = (await LIST.run({}, Caller("s"))).value
    codes = [one["language"] for one in listed["languages"]]
    assert " ".join(codes) == "zh en ja ko de fr ru pt es it"


@pytest.mark.parametrize("code", LANGUAGES)
async def test_a_language_that_was_set_is_told_and_is_in_the_prompt(code: str) -> None:
    caller = Caller("s", persona=Persona(character="Pip the Robot"))
    assert not (await SET.run({"language": code}, caller)).failed
    assert caller.persona == Persona(code, "Pip the Robot")
    told: Any = (await GET.run({}, caller)).value
    assert told["language"] == code
    assert LANGUAGES[code][0] in introduce_language(caller.persona)


async def test_a_language_that_is_none_changes_nothing() -> None:
    caller = Caller("s", persona=Persona("de"))
    result = await SET.run({"language": "tlh"}, caller)
    assert result.failed
    assert "zh, en" in str(result.value)
    assert caller.persona == Persona("de")


async def test_without_a_setting_nothing_is_told_to_the_model() -> None:
    assert introduce_language(Persona()) == ""
    told: Any = (await GET.run({}, Caller("s"))).value
    assert told["language"] is None
