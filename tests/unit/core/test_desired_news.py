"""What operators are told when properties of a device changed."""

from fleet.core.desired_news import news_of
from fleet.core.desired_state import GIVEN_UP, DesiredProperty


def test_only_changes_are_told_each_kind_once() -> None:
    wanted = DesiredProperty(40)
    confirmed, drift = wanted.turned("confirmed", 1), wanted.turned("drift", 2)
    left = drift.turned("drift", 3, GIVEN_UP, given_up=True)
    assert news_of({"volume": wanted}, {"volume": wanted}, {"volume": 7}, {"volume": 7}) == []
    assert news_of({"volume": wanted}, {"volume": confirmed}, {"volume": 7}, {"volume": 40}) == [
        ("state.changed", {"reported": {"volume": 40}}),
        ("state.confirmed", {"properties": {"volume": 40}}),
    ]
    seen = {"volume": {"desired": 40, "reported": 90}}
    assert news_of({"volume": confirmed}, {"volume": drift}, {"volume": 90}, {"volume": 90}) == [
        ("state.drift", {"properties": seen})
    ]
    assert news_of({"volume": drift}, {"volume": left}, {"volume": 90}, {"volume": 90}) == [
        ("alert.drift", {"properties": seen})
    ]
    assert news_of({"volume": left}, {"volume": left}, {"volume": 90}, {"volume": 90}) == []
    refused = {"theme": DesiredProperty("pink").turned("refused", 1, "no"), "volume": wanted}
    assert news_of({"volume": wanted}, refused, {}, {}) == [("state.refused", {"properties": {"theme": "no"}})]
