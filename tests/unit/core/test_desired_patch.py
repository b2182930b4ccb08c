"""Changes of a desired state."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleet.core.desired_patch import document_of, merge, patched
from fleet.core.desired_state import DesiredProperty

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=8,
)


def test_the_examples_of_the_standard() -> None:
    cases: list[tuple[Any, Any, Any]] = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], {"a": "b", "c": None}, {"a": "b"}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]
    for target, patch, expected in cases:
        assert merge(target, patch) == expected


@given(JSON, JSON)
def test_a_merge_patch_applied_twice_changes_nothing_more(target: Any, patch: Any) -> None:
    once = merge(target, patch)
    assert merge(once, patch) == once


def test_null_removes_and_everything_else_stays() -> None:
    before = patched({}, {"volume": 4, "theme": "dark", "tools": {"self.lamp": {"level": 1, "tone": 2}}}, {}, 1, 5)
    after = patched(before, {"theme": None, "tools": {"self.lamp": {"tone": None}}}, {}, 2, 6)
    assert document_of(after) == {"volume": 4, "tools": {"self.lamp": {"level": 1}}}
    assert (after["volume"], after["tools.self.lamp"].version) == (before["volume"], 2)
    assert document_of(patched(after, {"tools": None}, {}, 3, 7)) == {"volume": 4}


def test_a_named_value_is_set_again_unless_the_device_has_it() -> None:
    for state, version in (("confirmed", 1), ("pending", 1), ("changed", 2), ("refused", 2), ("sent", 2), ("drift", 2)):
        known = DesiredProperty(40, "once", 1, state, 5, applied=1)  # type: ignore[arg-type]
        assert patched({"volume": known}, {"volume": 40}, {}, 2, 9)["volume"].version == version, state
        assert patched({"volume": known}, {"theme": "dark"}, {}, 2, 9)["volume"] == known


def test_a_policy_lasts_until_it_is_taken_back_and_judges_anew() -> None:
    before = patched({}, {"volume": 40}, {"volume": "enforce", "theme": "watch"}, 1, 5)
    assert {name: one.policy for name, one in before.items()} == {"volume": "enforce"}
    assert patched(before, {"volume": 50}, {}, 2, 6)["volume"].policy == "enforce"
    assert patched(before, {}, {"volume": None}, 2, 6)["volume"].policy == "once"
    left = {"volume": DesiredProperty(40, "enforce", 1, "drift", 5, applied=1, given_up=True)}
    again = patched(left, {}, {"volume": "once"}, 2, 6)["volume"]
    assert (again.state, again.open, again.given_up) == ("pending", True, False)
