from hypothesis import given
from hypothesis import strategies as st

from fleet.wire import mcp

TOOL = {"name": "self.x", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["content", "tools", "type", "text"]), inner)
    ),
    max_leaves=10,
)


def test_a_damaged_tool_does_not_cost_the_others() -> None:
    page = mcp.parse_page({"tools": [TOOL, {"description": "no name"}, 5], "nextCursor": "self.y"})
    assert page is not None
    assert [tool.name for tool in page.tools] == ["self.x"]
    assert (page.cursor, page.damaged) == ("self.y", 2)


def test_tools_for_people_are_marked() -> None:
    page = mcp.parse_page({"tools": [{**TOOL, "annotations": {"audience": ["user"]}}]})
    assert page is not None
    assert page.tools[0].user_only
    assert page.cursor == ""


def test_text_errors_and_images_of_results() -> None:
    assert mcp.parse_result({"content": [{"type": "text", "text": "true"}], "isError": False}) == mcp.ToolResult(
        "true", False
    )
    assert mcp.parse_result({"content": [{"type": "text", "text": "no port"}], "isError": True}).failed
    both = [{"type": "image", "image": "{}"}, {"type": "image", "data": "AA==", "mimeType": "image/jpeg"}]
    assert mcp.parse_result({"content": both}).images == 2


def test_results_of_other_shapes_are_passed_on_as_json() -> None:
    assert mcp.parse_result({"volume": 5}).text == '{"volume": 5}'
    assert mcp.parse_result([1]).text == "[1]"
    assert mcp.parse_result("x" * 100_000).text.endswith("[…]")


@given(JSON)
def test_no_answer_raises(answer: object) -> None:
    mcp.parse_page(answer)  # type: ignore[arg-type]
    mcp.parse_result(answer)  # type: ignore[arg-type]
    mcp.parse_server(answer)  # type: ignore[arg-type]
