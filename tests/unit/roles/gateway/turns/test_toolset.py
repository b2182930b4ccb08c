import re

from fleet.core.ports import ToolCall, ToolOffer
from fleet.core.tool_gate import DENIED, ToolGate
from fleet.core.tool_policy import read_policy
from fleet.core.toolbox import MOST_OFFERS, Prepared, Refusal
from fleet.roles.gateway.turns.round import ServerCall
from fleet.roles.gateway.turns.toolset import TurnToolset
from fleet.wire.mcp import ToolSpec


def tool(name: str) -> ToolSpec:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return ToolSpec(name=name, description="d", input_schema=schema)


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall("1", name, arguments)


def test_names_that_models_accept_lead_back_to_the_clients_own() -> None:
    names = ["device.light.on", "device_light_on", "self.x", "x", f"{'a' * 60}.b"]
    toolset = TurnToolset([tool(name) for name in names], [ToolOffer("server_tool", "d")])
    offered = [offer.name for offer in toolset.offers]
    assert len(set(offered)) == 6
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in offered)
    back = [ready.tool.name for name in offered[:5] if isinstance(ready := toolset.prepare(call(name)), Prepared)]
    assert back == names
    assert toolset.prepare(call("server_tool", '{"a": [1]}')) == ServerCall("server_tool", {"a": [1]})


def test_clients_tool_hides_the_servers() -> None:
    toolset = TurnToolset([tool("get_weather")], [ToolOffer("get_weather", "d"), ToolOffer("other", "d")])
    assert [offer.name for offer in toolset.offers] == ["get_weather", "other"]
    assert isinstance(toolset.prepare(call("get_weather")), Prepared)


def test_dotted_name_of_a_client_is_understood_as_well() -> None:
    ready = TurnToolset([tool("a.b"), tool("self.c.d")], []).prepare(call("a.b", '{"n": "5"}'))
    assert isinstance(ready, Prepared)
    assert (ready.tool.name, ready.arguments) == ("a.b", {"n": 5})
    assert isinstance(TurnToolset([tool("self.c.d")], []).prepare(call("self.c.d")), Prepared)


def test_faults_have_their_codes() -> None:
    toolset = TurnToolset([tool("a.b")], [ToolOffer("server", "d")])
    for name in ("nobody", "a-b", "a.c"):
        refused = toolset.prepare(call(name))
        assert isinstance(refused, Refusal)
        assert refused.fault == "TOOL_NOT_FOUND"
    for bad in (call("a_b", "{"), call("a_b", '{"n": "x"}'), call("server", "[1]")):
        refused = toolset.prepare(bad)
        assert isinstance(refused, Refusal)
        assert refused.fault == "INVALID_TOOL_PARAMETERS"


def test_no_more_is_offered_than_endpoints_take_and_the_clients_come_first() -> None:
    clients, servers = [tool(f"own{n}") for n in range(30)], [ToolOffer(f"server{n}", "d") for n in range(MOST_OFFERS)]
    toolset = TurnToolset(clients, servers)
    names = [offer.name for offer in toolset.offers]
    assert names[:30] == [one.name for one in clients]
    assert len(names) == MOST_OFFERS
    assert toolset.left_out == 30
    assert TurnToolset(clients, []).left_out == 0


def test_a_denied_tool_of_the_client_and_of_the_server_is_not_offered_and_a_call_is_refused() -> None:
    gate = ToolGate(read_policy("deny door, deny weather"))
    toolset = TurnToolset([tool("door"), tool("lamp")], [ToolOffer("weather", "d"), ToolOffer("time", "d")], gate)
    assert [offer.name for offer in toolset.offers] == ["lamp", "time"]
    for name in ("door", "weather"):
        assert toolset.prepare(call(name)) == Refusal(DENIED, "TOOL_NOT_FOUND")
