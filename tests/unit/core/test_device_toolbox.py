import pytest

from fleet.core import device_toolbox as module
from fleet.core.device_toolbox import LARGEST_KEPT, LARGEST_LIST, MOST_KEPT, device_toolbox
from fleet.core.tool_gate import ToolGate
from fleet.core.tool_policy import read_policy
from fleet.wire.mcp import ToolSpec


@pytest.fixture(autouse=True)
def _nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_kept", {})


def tools(*names: str, description: str = "d") -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(name=name, description=description, input_schema={}) for name in names)


def names(own: tuple[ToolSpec, ...], policy: str = "", source: module.ToolSource = "device") -> list[str]:
    return [offer.name for offer in device_toolbox(own, source, ToolGate(read_policy(policy))).offers]


def test_turns_with_the_same_tools_and_policy_share_a_toolbox() -> None:
    own = tools("self.a", "self.b")
    first = device_toolbox(own, "device", ToolGate())
    assert device_toolbox(own, "device", ToolGate()) is first
    assert device_toolbox(tools("self.a", "self.b"), "device", ToolGate()) is not first


def test_each_policy_and_source_has_its_own() -> None:
    own = tools("self.a", "self.upgrade_firmware")
    assert names(own) == ["a"]
    assert names(own, source="program") == ["a", "upgrade_firmware"]
    assert names(own, "deny self.a") == []
    assert names(own) == ["a"]


def test_few_and_small_ones_are_kept() -> None:
    # All of them live, so that none has the identity of another.
    lists = [tools(f"self.t{number}") for number in range(MOST_KEPT + 10)]
    boxes = [device_toolbox(one, "device", ToolGate()) for one in lists]
    assert len(module._kept) == MOST_KEPT
    assert device_toolbox(lists[-1], "device", ToolGate()) is boxes[-1]
    assert device_toolbox(lists[0], "device", ToolGate()) is not boxes[0]
    large = tools(*(f"self.t{number}" for number in range(9)), description="x" * (LARGEST_KEPT // 8))
    assert device_toolbox(large, "device", ToolGate()) is not device_toolbox(large, "device", ToolGate())


def test_tools_that_are_not_offered_count_too() -> None:
    hidden = tuple(
        ToolSpec(name=f"self.t{number}", input_schema={"x": "x" * (LARGEST_LIST // 8)}, user_only=True)
        for number in range(9)
    )
    assert device_toolbox(hidden, "device", ToolGate()).size == 0
    assert not module._kept
    device_toolbox(hidden[:7], "device", ToolGate())
    assert len(module._kept) == 1
