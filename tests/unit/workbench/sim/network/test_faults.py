import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.network.faults import Faults, names, parse


def test_settings_become_faults() -> None:
    faults = parse(["loss=0.05", "reorder=0.02", "rebind_at=40", "invalid_utf8"])
    assert faults == Faults(loss=0.05, reorder=0.02, rebind_at=40, invalid_utf8=1.0)
    assert faults.udp
    assert not parse(["half_open=3"]).udp


def test_nothing_goes_wrong_by_default() -> None:
    assert parse([]) == Faults()
    assert not Faults().udp


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("los=0.1", "no fault 'los'"),
        ("loss=many", "no number"),
        ("loss=1.1", "between 0 and 1"),
        ("loss=-0.1", "between 0 and 1"),
        ("loss=nan", "between 0 and 1"),
        ("rebind_at=2.5", "no number"),
        ("half_open=inf", "between"),
        ("__class__=1", "no fault"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(setting: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse([setting])


@pytest.mark.parametrize("name", names())
def test_every_knob_can_be_set_by_its_name(name: str) -> None:
    assert getattr(parse([f"{name}=1"]), name) == 1
