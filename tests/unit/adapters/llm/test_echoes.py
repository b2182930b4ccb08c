from fleet.adapters.llm.echoes import LARGEST, MOST_CALLS, CallEcho, CallEchoes
from fleet.core.ports import ToolCall


def call(name: object) -> ToolCall:
    return ToolCall(str(name), "t", "{}")


def test_what_came_with_a_message_is_known_by_each_of_its_calls() -> None:
    echoes = CallEchoes()
    echoes.keep([call(1), call(2)], "hm", {"2": {"a": 1}})
    assert echoes.of(call(1)) == CallEcho("hm")
    assert echoes.of(call(2)) == CallEcho("hm", {"a": 1})
    assert echoes.of(call(3)) is None
    assert echoes.thinks


def test_calls_that_came_with_nothing_take_no_room() -> None:
    echoes = CallEchoes()
    echoes.keep([call(1)], "", {})
    assert echoes.of(call(1)) is None
    assert not echoes.thinks


def test_the_oldest_are_forgotten() -> None:
    echoes = CallEchoes()
    for number in range(MOST_CALLS + 5):
        echoes.keep([call(number)], "x", {})
    assert echoes.of(call(4)) is None
    assert echoes.of(call(5)) == CallEcho("x")
    echoes.keep([call("long")], "x" * (LARGEST - 10), {})
    assert echoes.of(call(MOST_CALLS - 10)) is None
    assert echoes.of(call("long"))
