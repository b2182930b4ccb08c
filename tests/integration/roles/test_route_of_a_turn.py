"""docs/route-of-a-turn.md names exactly the functions through which a real turn goes."""

import pytest

from fleet.wire.identity import CredentialKeys
from tests.support.mosquitto_server import MosquittoServer
from tests.support.turn_route import TOOLS, Leg, Step, Trace, read_page, without_beginning
from tests.support.turn_stage import turn_stage

MOST_HOPS, MOST_FILES = 45, 35
MOST_TOOL_HOPS = 20
MOST_OBJECTS_OF_A_SENTENCE = 3
SENTENCE = "fleet/roles/edge/speaking/speech.py", "SpokenAnswer.add"

CROSSINGS = "fleet/roles/worker/inbound/edge_messages.py", "fleet/roles/edge/dispatcher.py"
"""What reads an inbox in Redis: another process has written into it."""

LEGS = read_page()


@pytest.fixture
async def trace(redis_url: str, broker: MosquittoServer, keys: CredentialKeys) -> Trace:
    """What a turn with a tool call enters, from the utterance's datagrams to the first packet of its answer."""
    found = Trace({leg.steps[-1] for leg in LEGS})
    async with turn_stage(redis_url, broker, keys) as stage:
        with found.recording():
            call = await stage.ask()
            await stage.answer(call)
    return found


async def test_each_leg_is_entered_as_the_page_names_it_and_in_its_order(trace: Trace) -> None:
    named: set[Step] = set()
    at = 0
    for leg in LEGS:
        ways = [without_beginning(stack, named) for stack in trace.stacks[at:]]
        other = dict.fromkeys(way for way in ways if way[-1] == leg.steps[-1])
        assert leg.steps in ways, f"{leg.title}: the turn goes another way: {list(other)}"
        at += ways.index(leg.steps)
        assert not named or _follows(trace.stacks[at], named), f"{leg.title}: a leg before it is missing"
        named.update(leg.steps)


def _follows(stack: tuple[Step, ...], named: set[Step]) -> bool:
    """Whether a leg begins where the turn was: what takes from a queue stands in the file of what puts into it."""
    files = {path for path, _ in named}
    return stack[0][0] in CROSSINGS or bool(files & {path for path, _ in stack})


def test_the_route_is_short_and_has_no_function_without_a_name() -> None:
    answer = _steps([leg for leg in LEGS if not leg.title.startswith(TOOLS)])
    tools = _steps([leg for leg in LEGS if leg.title.startswith(TOOLS)]) - answer
    assert len(answer) <= MOST_HOPS
    assert len({path for path, _ in answer}) <= MOST_FILES
    assert len(tools) <= MOST_TOOL_HOPS
    assert len({path for path, _ in answer | tools}) <= MOST_FILES
    assert not [name for _, name in answer | tools if "<" in name]


def test_a_sentence_passes_few_objects_on_its_way_to_the_voice() -> None:
    [leg] = [leg for leg in LEGS if leg.steps[-1] == SENTENCE]
    assert len({name.partition(".")[0] for _, name in leg.steps}) <= MOST_OBJECTS_OF_A_SENTENCE


def test_a_tool_call_does_not_go_back_into_the_turn() -> None:
    tools = _steps([leg for leg in LEGS if leg.title.startswith(TOOLS)])
    assert not [name for _, name in tools if name.startswith(("WorkerTurn.", "WorkerTurns."))]


def _steps(legs: list[Leg]) -> set[Step]:
    return {step for leg in legs for step in leg.steps}
