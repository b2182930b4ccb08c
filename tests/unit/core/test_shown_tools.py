import pytest
from hypothesis import given

from fleet.core import shown_tools
from fleet.core.schemas.cleaning import clean
from fleet.core.schemas.shown import shown
from fleet.core.shown_tools import LARGEST_KEPT, MOST_KEPT, show
from fleet.wire.mcp import ToolSpec
from tests.unit.core.schemas.test_cleaning import OBJECTS


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_tools, "_kept", {})


@given(OBJECTS)
def test_a_tool_is_shown_again_as_the_first_time(schema: dict[str, object]) -> None:
    tool = ToolSpec(name="a", description="b", input_schema=schema)
    first, again = show(tool), show(tool)
    assert first == again and first.parameters == shown(clean(schema))


def test_tools_with_one_schema_and_other_words_are_apart() -> None:
    tool = ToolSpec(name="a", input_schema={"type": "object"})
    described = tool.model_copy(update={"description": "b"})
    assert [show(one).description for one in (tool, described, tool)] == ["a", "b", "a"]
    assert show(tool).parameters is show(tool).parameters


def test_few_tools_are_kept_and_none_that_is_large() -> None:
    for number in range(2 * MOST_KEPT):
        show(ToolSpec(name=str(number), input_schema={"title": str(number)}))
    kept = shown_tools._kept
    assert len(kept) == MOST_KEPT and next(iter(kept.values()))[0] == {"title": str(MOST_KEPT)}
    for large in (
        ToolSpec(name="a", input_schema={"title": "x" * LARGEST_KEPT}),
        ToolSpec(name="a", description="x" * (LARGEST_KEPT + 1)),
    ):
        assert show(large).parameters["type"] == "object"
        assert all(schema is not large.input_schema for schema, _ in kept.values())
