"""What is said to the demo model with which tools, what it calls, what it answers: the table `sentences.txt`.

A line holds the sentence, the calls and the answer; `?` is the answer of a model that did not understand.
"""

import asyncio
import json
import re
from pathlib import Path

import pytest

from fleet.adapters.tools.load import open_tools
from fleet.ground.settings import load
from fleet.workbench.demo_llm.reading import read
from fleet.workbench.demo_llm.schemas import Tool, understand
from fleet.workbench.demo_llm.words import say
from tests.support.demo_tools import Calls, talk, tools_named
from tests.support.every import for_every
from tests.support.recordings import recordings

_TABLE = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8")
Row = tuple[str, str, str, str]


def rows() -> list[Row]:
    found, name = [], ""
    for line in _TABLE.splitlines():
        if line.startswith("# "):
            name = line[2:]
        elif line:
            sentence, calls, answer = (part.strip() for part in line.split("|"))
            found.append((name, sentence, calls, answer))
    return found


def written(calls: Calls) -> str:
    return "; ".join(f"{name} {json.dumps(given, ensure_ascii=False)}" if given else name for name, given in calls)


def answered(sentence: str, tools: tuple[Tool, ...]) -> tuple[str, str]:
    calls, answer = talk(sentence, tools)
    unknown = answer == say("not_understood", read(sentence).language)
    return written(calls), "?" if unknown else answer


@pytest.fixture(scope="session")
def server_tools() -> tuple[Tool, ...]:
    async def listed() -> tuple[Tool, ...]:
        async with open_tools(load()) as tools:
            return tuple(
                understand(one.name, one.description, json.dumps(dict(one.parameters))) for one in tools.offers
            )

    return asyncio.run(listed())


@for_every("name, sentence, calls, answer", rows())
def test_a_sentence_gets_its_calls_and_its_answer(
    name: str, sentence: str, calls: str, answer: str, server_tools: tuple[Tool, ...]
) -> None:
    tools = (*tools_named("stock"), *server_tools) if name == "server" else tools_named(name)
    assert answered(sentence, tools) == (calls, answer)


@for_every("sentence", [row[1] for row in rows() if row[0] == "stock" and row[2]])
def test_a_devices_own_matters_are_understood_beside_the_servers_tools(
    sentence: str, server_tools: tuple[Tool, ...]
) -> None:
    stock = tools_named("stock")
    assert talk(sentence, (*stock, *server_tools)) == talk(sentence, stock)


def test_every_recording_is_in_the_table() -> None:
    said = {row[1] for row in rows() if row[0] == "home" and row[3] != "?"}
    assert {one.text for language in ("en", "zh") for one in recordings(language)} <= said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_not_understanding_takes_less_than_four_seconds(language: str) -> None:
    # The slowest voices here say 13 English letters or 4 Chinese characters a second
    answer = say("not_understood", "zh" if language == "zh" else "en")
    spoken = len(re.findall(r"[㐀-鿿]", answer)) / 4 + len(re.findall(r"[ -~]", answer)) / 13
    assert 0 < spoken < 4
