"""The reports as a turn reads them; the rest is tested with a worker."""

import pytest

from fleet.adapters.redis.devices.reports import read_report
from fleet.core.reports import DeviceReport


@pytest.mark.parametrize(("ms", "seconds"), [(0, 0), (999, 0), (1_000, 1), (600_000, 600), (600_999, 600)])
def test_a_report_is_as_old_as_the_whole_seconds_since_it_came(ms: int, seconds: int) -> None:
    assert read_report(f"{ms} the door is open") == DeviceReport(seconds, "the door is open")
