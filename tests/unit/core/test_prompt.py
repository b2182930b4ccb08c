from datetime import UTC, datetime

import pytest

from fleet.core.prompt import CLIENT_PROMPT, DEVICE_PROMPT, write_prompt

NOW = datetime(2025, 2, 21, 10, 30, tzinfo=UTC)


def test_a_prompt_has_one_fact_a_line_and_nothing_for_what_is_unknown() -> None:
    assert write_prompt("Be brief.", NOW) == "Be brief.\nIt is Friday, 2025-02-21 10:30."
    assert write_prompt("Be brief.", NOW, language="de", persona="You are a pirate.", reports="Events:\n- x").split(
        "\n"
    ) == [
        "Be brief.",
        "You are a pirate.",
        "The user speaks 'de'.",
        "It is Friday, 2025-02-21 10:30.",
        "Events:",
        "- x",
    ]


@pytest.mark.parametrize("prompt", [CLIENT_PROMPT, DEVICE_PROMPT])
def test_prompts_of_our_own_ask_for_speech(prompt: str) -> None:
    for word in ("voice assistant", "emoji", "Markdown", "language of the user", "no tool did"):
        assert word in prompt


def test_the_prompt_for_clients_asks_for_brevity_and_honesty() -> None:
    for word in ("read aloud", "briefly", "not sure"):
        assert word in CLIENT_PROMPT
