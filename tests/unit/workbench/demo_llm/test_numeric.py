import pytest

from fleet.workbench.demo_llm.numeric import adjustable, glossed
from fleet.workbench.demo_llm.reading import read
from tests.support.demo_tools import tool, whole


@pytest.mark.parametrize(
    "description", ["0 = closed, 100 = open", "0表示关闭，100表示打开", "0 is fully closed and 100 means open."]
)
def test_numbers_that_stand_for_open_and_closed_are_found(description: str) -> None:
    in_argument = tool("curtain", "", position=whole(0, 100, description))
    in_tool = tool("curtain", description, position=whole(0, 100))
    for made in (in_argument, in_tool):
        assert [glossed(made, made.properties[0], action) for action in ("on", "off")] == [100, 0]


def test_a_number_outside_the_range_stands_for_nothing() -> None:
    made = tool("curtain", "Model 300 opens", position=whole(0, 100))
    assert glossed(made, made.properties[0], "on") is None


def test_the_argument_that_was_named_is_moved() -> None:
    made = tool("fan", "", speed=whole(1, 5), angle=whole(0, 90))
    named = adjustable(read("make the fan faster"), made)
    assert named is not None
    assert named.name == "speed"
    assert adjustable(read("turn up the fan"), made) is None
