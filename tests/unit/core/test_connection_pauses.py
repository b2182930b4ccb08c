"""Times of calls after a connection."""

from fleet.core.connection_pauses import JITTER_MS, SETTLE_MS, after_connection


def test_devices_that_connect_together_are_called_later_and_at_different_times() -> None:
    times = {after_connection(1_000) for _ in range(500)}
    assert min(times) >= 1_000 + SETTLE_MS and max(times) < 1_000 + SETTLE_MS + JITTER_MS
    assert 10 <= len(times) <= 20, "few enough to be written together"
