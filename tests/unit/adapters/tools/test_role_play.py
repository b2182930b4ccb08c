from pathlib import Path
from typing import Any

import pytest

from fleet.adapters.tools.role_play import RolePlay, read_characters
from fleet.core.server_tools import Caller, Persona, ServerTool
from fleet.ground.errors import ConfigError

PLAY = RolePlay(read_characters(None))
TOOLS = {tool.offer.name: tool for tool in PLAY.tools()}
GOOD = '[[character]]\nname = "A"\nnames = ["甲"]\ndescription = "d"\nprompt = "p"\n'


async def run(name: str, caller: Caller, **arguments: Any) -> Any:
    tool: ServerTool = TOOLS[name]
    return await tool.run(arguments, caller)


async def test_a_role_is_entered_told_and_left() -> None:
    caller = Caller("session 1", persona=Persona("de"))
    entered = await run("enter_roleplay_mode", caller, character="船长", session_id="made up")
    assert entered.value["character"] == "Captain Saltbeard"
    assert entered.value["session_id"] == "session 1"
    assert "Patience" in entered.value["note"]
    assert caller.persona == Persona("de", "Captain Saltbeard")
    assert "Patience" in PLAY.introduce(caller.persona)
    status = await run("get_roleplay_status", caller)
    assert status.value == {"active": True, "character": "Captain Saltbeard", "session_id": "session 1"}
    left = await run("exit_roleplay_mode", caller)
    assert left.value["left"] == "Captain Saltbeard"
    assert caller.persona == Persona("de")
    assert (await run("get_roleplay_status", caller)).value["active"] is False
    assert PLAY.introduce(caller.persona) == ""


async def test_leaving_without_a_role_is_no_failure() -> None:
    assert not (await run("exit_roleplay_mode", Caller("s"))).failed


async def test_an_unknown_character_is_an_error_with_the_list() -> None:
    caller = Caller("s")
    result = await run("enter_roleplay_mode", caller, character="Napoleon")
    assert result.failed
    assert all(one.name in result.value for one in PLAY.characters)
    assert caller.persona == Persona()


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("captain saltbeard", "Captain Saltbeard"),
        ("盐胡子", "Captain Saltbeard"),
        ("小机器人", "Pip the Robot"),
        ("Dr Lumen", "Doctor Lumen"),
        ("the pirate", "Captain Saltbeard"),
        ("奶奶", "Grandma Plum"),
    ],
)
def test_a_character_is_found_by_each_of_its_names(said: str, name: str) -> None:
    found = PLAY.find(said)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("said", ["", " ", "a", "Captain Saltbeard and Doctor Lumen"])
def test_a_name_that_could_be_anybody_is_nobody(said: str) -> None:
    assert PLAY.find(said) is None


async def test_the_list_has_names_in_both_languages() -> None:
    listed = (await run("list_available_characters", Caller("s"))).value["characters"]
    assert len(listed) >= 5
    assert all(any(ord(char) > 0x3000 for name in one["names"] for char in name) for one in listed)


def test_a_role_that_is_in_no_file_any_more_is_not_played() -> None:
    assert PLAY.introduce(Persona(character="Somebody Else Entirely")) == ""


def test_a_file_takes_the_place_of_the_packaged_characters(tmp_path: Path) -> None:
    path = tmp_path / "characters.toml"
    path.write_text(GOOD)
    (only,) = read_characters(path)
    assert (only.name, only.prompt) == ("A", "p")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "No such file"),
        ("", "character"),
        ("[[character]", "line 1"),
        ('[[character]]\nname = "A"\n', "character.0.description"),
        (GOOD + "colour = 1\n", "character.0.colour"),
        (GOOD + GOOD.replace('"A"', '"a"').replace("甲", "乙"), "two characters are called a"),
        (GOOD.replace('"p"', f'"{"x" * 5000}"'), "character.0.prompt"),
    ],
)
def test_a_bad_file_is_refused_with_the_place(tmp_path: Path, text: str | None, told: str) -> None:
    path = tmp_path / "characters.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match="FLEET_CHARACTERS") as error:
        read_characters(path)
    assert told in str(error.value)
