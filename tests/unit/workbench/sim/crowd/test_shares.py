"""How a crowd is drawn."""

from collections import Counter

import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.crowd.crowd import CrowdPlan, is_due, mac_of
from fleet.workbench.sim.crowd.place import DEVICES_OF_ADDRESS, Place, source_of
from fleet.workbench.sim.crowd.run import slices
from fleet.workbench.sim.crowd.shares import Shares, chance


def test_calls_end_in_their_shares_and_the_same_way_at_every_run() -> None:
    shares = Shares(error=0.3, silent=0.1, late=0.05)
    drawn = [shares.fate(1, mac_of(device), call) for device in range(1000) for call in range(4)]
    counted = Counter(drawn)
    for fate, share in (("error", 0.3), ("silent", 0.1), ("late", 0.05), ("ok", 0.55)):
        assert abs(counted[fate] / len(drawn) - share) < 0.03, counted
    assert drawn == [shares.fate(1, mac_of(device), call) for device in range(1000) for call in range(4)]
    assert drawn != [shares.fate(2, mac_of(device), call) for device in range(1000) for call in range(4)]
    assert {Shares().fate(1, mac_of(device), 0) for device in range(100)} == {"ok"}
    assert len({chance(1, number) for number in range(1000)}) == 1000


def test_shares_are_read_from_words() -> None:
    assert Shares.parse(["offline=0.3", "error=1"]) == Shares(offline=0.3, error=1.0)
    for wrong in ("offline", "offline=x", "offline=1.5", "offline=nan", "sleepy=0.1"):
        with pytest.raises(ConfigError):
            Shares.parse([wrong])


def test_devices_have_macs_and_addresses_of_their_own() -> None:
    assert len({mac_of(number) for number in range(70_000)}) == 70_000
    sources = Counter(source_of(number) for number in range(100_000))
    assert set(sources.values()) == {DEVICES_OF_ADDRESS}
    assert all(one.startswith("127.") for one in sources)


@pytest.mark.parametrize("late", [1, 7])
def test_every_device_has_its_turn_also_in_a_process_that_is_late(late: int) -> None:
    looks = range(100, 1_000, late)
    for number in range(120):
        assert sum(is_due(now - late, now, number, 120) for now in looks) in (7, 8)


def test_a_crowd_is_split_by_open_files_and_no_device_is_lost() -> None:
    plan = CrowdPlan("http://127.0.0.1/", 100_000, first=7, rate=900.0)
    parts = slices(plan, 20_000)
    assert len(parts) == 6
    assert [one.first for one in parts] == [7, *(one.first + one.count for one in parts[:-1])]
    assert sum(one.count for one in parts) == 100_000
    assert sum(one.rate for one in parts) == pytest.approx(900.0)
    assert slices(CrowdPlan("", 100), 20_000) == [CrowdPlan("", 100)]
    assert [one.count for one in slices(CrowdPlan("", 100), 20_000, 3)] == [33, 33, 34]
    with pytest.raises(ConfigError):
        slices(plan, 400)


def test_a_server_is_named_by_its_url() -> None:
    assert Place.of("http://127.0.0.1:81/a/b?c=d") == Place("127.0.0.1", 81, "/a/b?c=d")
    assert Place.of("http://fleet.example") == Place("fleet.example", 80, "/")
    assert Place.of("http://127.0.0.1/").is_loopback and not Place.of("http://fleet.example").is_loopback
    for wrong in ("https://127.0.0.1/", "ftp://x", "nonsense"):
        with pytest.raises(ConfigError):
            Place.of(wrong)
