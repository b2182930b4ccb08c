import pytest

from fleet.adapters.redis.devices import tools as module
from fleet.adapters.redis.devices.tools import decode_tools, pack_tools
from fleet.wire.mcp import ToolSpec

TOOLS = (
    ToolSpec(name="self.lamp.turn_on", description="开灯", input_schema={"type": "object", "properties": {}}),
    ToolSpec(name="self.lamp.turn_off", user_only=True),
)


async def test_tools_are_kept_in_less_than_their_json() -> None:
    many = tuple(TOOLS[0].model_copy(update={"name": f"self.lamp.{number}"}) for number in range(10))
    packed = await pack_tools(many)
    assert packed.isascii()
    assert len(packed) < 0.5 * sum(len(tool.model_dump_json()) for tool in many)
    assert decode_tools(packed) == many


async def test_tools_come_back_as_they_were() -> None:
    assert decode_tools(await pack_tools(TOOLS)) == TOOLS
    assert decode_tools(await pack_tools(())) == ()


def test_lists_that_were_kept_as_json_are_read_too() -> None:
    assert decode_tools(f"[{TOOLS[0].model_dump_json()}]") == TOOLS[:1]
    assert decode_tools("") == ()


async def test_a_list_is_decoded_once_so_long_as_it_is_among_the_last_and_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_decoded", {})
    texts = [await pack_tools([ToolSpec(name=str(number))]) for number in range(module._MOST_DECODED + 1)]
    first = decode_tools(texts[0])
    assert decode_tools(texts[0]) is first
    for text in texts[1:]:
        decode_tools(text)
    assert decode_tools(texts[0]) is not first and decode_tools(texts[0]) == first
    large = await pack_tools([ToolSpec(name="a", description="x" * module._LARGEST_DECODED)])
    assert decode_tools(large) is not decode_tools(large)
    assert len(module._decoded) == module._MOST_DECODED
