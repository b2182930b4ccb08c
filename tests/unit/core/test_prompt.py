import pytest

from fleet.core.prompt import CLIENT_PROMPT, DEVICE_PROMPT, write_prompt
from fleet.core.situation import SITUATION_RULE


def test_a_prompt_has_instructions_and_persona() -> None:
    assert write_prompt("Be brief.").split("\n") == ["Be brief.", SITUATION_RULE]
    assert write_prompt("Be brief.", persona="You are a pirate.").split("\n") == [
        "Be brief.",
        SITUATION_RULE,
        "You are a pirate.",
    ]


@pytest.mark.parametrize("prompt", [CLIENT_PROMPT, DEVICE_PROMPT])
def test_prompts_of_our_own_ask_for_speech(prompt: str) -> None:
    for word in ("voice assistant", "emoji", "Markdown", "language of the user", "no tool did"):
        assert word in prompt


def test_the_prompt_for_clients_asks_for_brevity_and_honesty() -> None:
    for word in ("read aloud", "briefly", "not sure"):
        assert word in CLIENT_PROMPT
