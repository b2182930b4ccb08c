from fleet.core.toolbox import Toolbox
from fleet.core.user_tools import is_for_users, user_tool
from fleet.wire.mcp import ToolSpec
from fleet.workbench.sim.tools.user_tools import USER_ONLY


def test_every_tool_for_users_of_firmware_is_known_and_none_reaches_the_model() -> None:
    for tool in USER_ONLY:
        known = user_tool(tool.name)
        assert known is not None, tool.name
        assert set(known.input_schema["properties"]) == {one.name for one in tool.parameters}, tool.name
        assert Toolbox([known]).offers == ()
    assert user_tool("self.audio_speaker.set_volume") is None


def test_firmware_that_does_not_mark_such_a_tool_has_it_for_users_too_and_a_program_names_its_tools_as_it_likes() -> (
    None
):
    for tool in USER_ONLY:
        assert is_for_users(ToolSpec(name=tool.name), "device"), tool.name
        assert not is_for_users(ToolSpec(name=tool.name), "program"), tool.name
    assert is_for_users(ToolSpec(name="self.board.erase", user_only=True), "program")
    assert not is_for_users(ToolSpec(name="self.lamp.turn_on"), "device")
