import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from fleet.wire import mcp

TOOL: dict[str, JsonValue] = {"name": "self.x", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
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


def test_of_a_page_that_is_too_long_the_beginning_is_read() -> None:
    page = mcp.parse_page(
        {"tools": [{**TOOL, "name": f"self.{number}", "description": "d" * 900} for number in range(20)]}
    )
    assert page is not None
    assert [tool.name for tool in page.tools] == [f"self.{number}" for number in range(8)]
    assert page.too_long
    whole = mcp.parse_page({"tools": [TOOL] * 90})
    assert whole is not None
    assert (len(whole.tools), whole.too_long) == (90, False)


@pytest.mark.parametrize("entry", [{}, [], 0, {"name": ""}, {"name": 1, "inputSchema": 1}, {"name": "n" * 300}])
def test_entries_that_are_no_tools_cost_no_errors(entry: JsonValue, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[JsonValue] = []
    read = mcp._tool
    monkeypatch.setattr(mcp, "_tool", lambda given, **how: looked.append(given) or read(given, **how))  # type: ignore[func-returns-value]
    page = mcp.parse_page({"tools": [TOOL, *[entry] * 20_000]})
    assert page is not None
    assert (len(page.tools), page.too_long) == (1, True)
    assert page.damaged < 2_700
    assert looked == [TOOL]


def test_tools_for_people_are_marked() -> None:
    page = mcp.parse_page({"tools": [{**TOOL, "annotations": {"audience": ["user"]}}]})
    assert page is not None
    assert page.tools[0].user_only
    assert page.cursor == ""


@pytest.mark.parametrize(
    "entry",
    [
        {**TOOL, "inputSchema": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": {"k": {"l": {}}}}}}}}}}}}}},
        {**TOOL, "inputSchema": {"description": "x" * mcp.LARGEST_SCHEMA}},
        {**TOOL, "name": "x" * 300},
        {**TOOL, "name": 5},
        None,
    ],
)
def test_a_tool_that_cannot_be_right_is_dropped(entry: object) -> None:
    page = mcp.parse_page({"tools": [entry, TOOL]})  # type: ignore[dict-item]
    assert page is not None
    assert ([tool.name for tool in page.tools], page.damaged) == (["self.x"], 1)


@pytest.mark.parametrize(
    "change",
    [
        *({"description": wrong} for wrong in (None, 5, "x" * 9000)),
        *({"inputSchema": wrong} for wrong in (None, [])),
        *({"annotations": wrong} for wrong in (None, {"audience": "user"}, {"audience": [1]})),
    ],
)
def test_a_tool_with_a_fault_beside_its_name_is_kept(change: dict[str, JsonValue]) -> None:
    page = mcp.parse_page({"tools": [{**TOOL, **change}]})
    assert page is not None
    assert [tool.name for tool in page.tools] == ["self.x"]
    assert len(page.tools[0].description) <= mcp.LONGEST_DESCRIPTION


@pytest.mark.parametrize("cursor", [None, 5, "", "x" * 300, []])
def test_what_is_no_cursor_ends_the_list(cursor: JsonValue) -> None:
    page = mcp.parse_page({"tools": [], "nextCursor": cursor})
    assert page is not None
    assert page.cursor == ""


def test_texts_of_a_result_are_joined() -> None:
    parts: list[JsonValue] = [
        {"type": "text", "text": "a"},
        {"type": "text", "text": ""},
        {"type": "text", "text": "b"},
    ]
    assert mcp.parse_result({"content": parts, "isError": False}) == mcp.ToolResult("a\nb", failed=False)


@pytest.mark.parametrize(
    ("flag", "failed"),
    [(True, True), ("true", True), (1, True), (False, False), (None, False), ({}, False), ("", False)],
)
def test_only_a_clear_flag_is_a_failure(flag: JsonValue, failed: bool) -> None:
    result = mcp.parse_result({"content": [{"type": "text", "text": "x"}], "isError": flag})
    assert result == mcp.ToolResult("x", failed)


def test_results_of_other_shapes_are_passed_on_as_json() -> None:
    assert mcp.parse_result({"volume": 5}).text == '{"volume": 5}'
    assert mcp.parse_result({"content": "x"}).text == '{"content": "x"}'
    assert mcp.parse_result([1]).text == "[1]"
    assert mcp.parse_result("x y").text == '"x y"'


def test_long_results_are_cut_and_say_so() -> None:
    text = mcp.parse_result("ab " * 10_000).text
    assert text.endswith("[… cut, 22002 more characters]")
    assert len(text) < mcp.LARGEST_RESULT + 50


@pytest.mark.parametrize("wrap", [0, 76])
def test_encoded_data_never_reaches_the_model(wrap: int) -> None:
    data = base64.b64encode(bytes(range(256)) * 12).decode()
    if wrap:
        data = "\n".join(data[at : at + wrap] for at in range(0, len(data), wrap))
    for result in ({"x": data}, {"content": [{"type": "text", "text": f"see data:a/b;base64,{data}."}]}):
        text = mcp.parse_result(result).text.replace("\\n", "\n")
        assert data[:80] not in text
    assert mcp.clip(f"see {data} there") in ("see [3 KB of data] there", "see [4 KB of data] there")


def test_looking_for_data_takes_no_time() -> None:
    mcp.clip(("a" * 255 + " ") * 1000 + ("b" * 60 + "\n" + "c" * 59 + "\n") * 2000)


def test_words_are_not_taken_for_data() -> None:
    text = "/a/long/path " * 40 + "好" * 500 + " w" * 500
    assert mcp.clip(text) == text


@given(JSON)
def test_no_answer_raises(answer: object) -> None:
    mcp.parse_page(answer)  # type: ignore[arg-type]
    mcp.parse_result(answer)  # type: ignore[arg-type]
    mcp.parse_server(answer)  # type: ignore[arg-type]
