from types import SimpleNamespace
from typing import Any

from fleet.roles.edge.registry import SessionRegistry


def session(device: str, name: str, ssrc: int) -> Any:
    closed: list[str] = []
    opened = SimpleNamespace(device=device, session=name, ssrc=ssrc)
    return SimpleNamespace(opened=opened, closed=closed, close=lambda: closed.append(name))


def test_a_session_is_found_by_its_ssrc_and_by_device_and_id() -> None:
    registry, one = SessionRegistry(), session("d", "s1", 7)
    registry.add(one)
    assert registry.by_ssrc[7] is registry.find("d", "s1") is one
    assert registry.find("d", "s0") is None and registry.find("other", "s1") is None
    assert len(registry) == 1 and list(registry) == [one]


def test_a_newer_session_of_a_device_closes_the_older() -> None:
    registry, old, new = SessionRegistry(), session("d", "s1", 7), session("d", "s2", 8)
    registry.add(old)
    registry.add(new)
    assert (old.closed, new.closed) == (["s1"], [])
    assert registry.by_ssrc == {8: new}


def test_the_end_of_one_session_leaves_another_with_the_same_ssrc() -> None:
    registry, one, other = SessionRegistry(), session("d", "s1", 7), session("e", "s2", 7)
    registry.add(one)
    registry.add(other)
    registry.remove("d")
    registry.remove("d")
    assert registry.by_ssrc == {7: other} and one.closed == ["s1"]
