import pytest

from fleet.core.rates import Buckets, Rate
from fleet.ground.errors import ConfigError
from fleet.ground.settings import load
from fleet.ground.settings.rates import RateGroup

SETTINGS = [name for name in RateGroup.model_fields if name.startswith("rate_")]


def test_a_burst_passes_and_then_as_many_as_come_for_long() -> None:
    buckets = Buckets(Rate(2, 3))
    assert [buckets.take("a", 100.0) for _ in range(3)] == [0, 0, 0]
    assert buckets.take("a", 100.0) == pytest.approx(0.5)
    assert buckets.take("a", 100.4) == pytest.approx(0.1)
    assert buckets.take("a", 100.51) == 0
    assert buckets.take("a", 100.52) > 0


def test_who_is_refused_is_not_punished_for_asking() -> None:
    buckets = Buckets(Rate(1, 1))
    buckets.take("a", 0.0)
    assert all(buckets.take("a", 0.5) for _ in range(1000))
    assert buckets.take("a", 1.0) == 0


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    buckets = Buckets(Rate(10, 2))
    buckets.take("a", 0.0)
    assert [buckets.take("a", 1e6) > 0 for _ in range(3)] == [False, False, True]


def test_rounding_takes_nothing_from_a_burst() -> None:
    for step in range(1000):
        now = 65_035.1 + step * 0.777  # times above and below a power of two are rounded differently
        buckets = Buckets(Rate(1 / 60, 10))
        assert [buckets.take("a", now) > 0 for _ in range(11)] == [False] * 10 + [True], now


def test_what_is_given_back_can_be_taken_again_and_a_bucket_stays_full() -> None:
    buckets = Buckets(Rate(1, 2))
    buckets.take("a", 0.0)
    buckets.give_back("a", 0.0)
    for _ in range(3):
        buckets.give_back("a", 0.0)
    assert [buckets.take("a", 0.0) > 0 for _ in range(3)] == [False, False, True]


def test_what_costs_more_takes_more() -> None:
    buckets = Buckets(Rate(1, 10))
    assert buckets.take("a", 0.0, 7) == 0
    assert buckets.take("a", 0.0, 4) == pytest.approx(1.0)
    assert buckets.take("a", 0.0, 3) == 0
    assert buckets.take("b", 0.0, 11) > 0


def test_keys_do_not_share() -> None:
    buckets = Buckets(Rate(1, 1))
    assert buckets.take("a", 0.0) == buckets.take("b", 0.0) == 0
    assert buckets.take("a", 0.0) > 0


def test_memory_is_bounded_and_a_key_in_use_is_kept() -> None:
    buckets = Buckets(Rate(0.001, 1), most=100)
    buckets.take("attacker", 0.0)
    for number in range(10_000):
        buckets.take(f"invented {number}", 0.0)
        assert buckets.take("attacker", 0.0) > 0
    assert len(buckets) == 100


def test_the_clock_may_stand_still_or_go_back() -> None:
    buckets = Buckets(Rate(1, 1))
    assert buckets.take("a", 10.0) == 0
    assert buckets.take("a", 5.0) == pytest.approx(6.0)


@pytest.mark.parametrize("text", ["", "1", "1/0", "0/1", "-1/1", "1/1.5", "a/b", "1/2/3", "nan/1", "inf/1", "1e3/1"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="PER_SECOND/BURST"):
        Rate.parse(text)


def test_a_rate_is_read() -> None:
    assert Rate.parse(" 0.5/10 ") == Rate(0.5, 10)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_refuse_what_is_no_rate(name: str) -> None:
    assert Rate.parse(RateGroup.model_fields[name].default)
    for wrong in ("1", "0/1", "0.0/1", "1/0", "a/1", "1/1.5"):
        with pytest.raises(ConfigError, match="PER_SECOND/BURST"):
            load(**{name: wrong})
