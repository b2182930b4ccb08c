"""Which firmware a device installs at bootstrap (ota.cc)."""

import pytest

from fleet.workbench.sim.bootstrap.ota import upgrade_of


@pytest.mark.parametrize(
    ("section", "wanted"),
    [
        ({"version": "2.5.0", "url": "u"}, True),
        ({"version": "2.4.2", "url": "u"}, False),
        ({"version": "2.3.0", "url": "u"}, False),
        ({"version": "2.3.0", "url": "u", "force": 1}, True),
        ({"version": "2.5.0", "url": ""}, False),
        ({}, False),
    ],
)
def test_a_higher_version_is_installed_and_a_forced_one(section: dict[str, str | int], wanted: bool) -> None:
    assert bool(upgrade_of(dict(section), "2.4.2")) is wanted
