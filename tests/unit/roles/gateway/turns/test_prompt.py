from datetime import UTC, datetime

from fleet.roles.gateway.turns.prompt import DEFAULT_PROMPT, write_prompt

NOW = datetime(2025, 2, 21, 10, 30, tzinfo=UTC)


def test_prompt_tells_persona_and_time() -> None:
    assert write_prompt(None, "", NOW) == f"{DEFAULT_PROMPT}\nIt is Friday, 2025-02-21 10:30."
    assert write_prompt("Be brief.", "You are a pirate.", NOW).split("\n")[:2] == ["Be brief.", "You are a pirate."]


def test_prompt_of_our_own_asks_for_speech() -> None:
    for word in ("read aloud", "emoji", "Markdown", "briefly", "not sure"):
        assert word in DEFAULT_PROMPT
