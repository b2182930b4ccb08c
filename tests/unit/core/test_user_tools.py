from fleet.core.toolbox import Toolbox
from fleet.core.user_tools import user_tool
from fleet.workbench.sim.tools.user_tools import USER_ONLY


def test_every_tool_for_users_of_firmware_is_known_and_none_reaches_the_model() -> None:
    for tool in USER_ONLY:
        known = user_tool(tool.name)
        assert known is not None, tool.name
        assert set(known.input_schema["properties"]) == {one.name for one in tool.parameters}, tool.name
        assert Toolbox([known]).offers == ()
    assert user_tool("self.audio_speaker.set_volume") is None
