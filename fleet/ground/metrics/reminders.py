"""Timers and reminders that users of devices set."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric

requests: Final = CounterMetric(
    "fleet_reminder_requests",
    "Reminders that users wanted: set, refused as the device or the site has no place for more, or not kept.",
    "worker",
    {"outcome": ("set", "no_place_device", "no_place_site", "failed")},
)
ended: Final = CounterMetric(
    "fleet_reminders_ended",
    "Reminders that were due: told by a way, in time or later; not told in time (`expired`); or nobody knows (`lost`).",
    "worker",
    {"end": ("speech", "notify", "alert", "expired", "lost"), "late": ("yes", "no")},
)
