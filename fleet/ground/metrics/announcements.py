"""Announcements to devices."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric

clips: Final = CounterMetric(
    "fleet_clips",
    "Clips of announcements that an edge made, or could not make.",
    "edge",
    {"outcome": ("made", "failed")},
)
deliveries: Final = CounterMetric(
    "fleet_announcement_deliveries",
    "Ways that were taken to give a device an announcement, by what became of it; `not_taken` ones take the next way.",
    "worker",
    {
        "way": ("speech", "notify", "alert"),
        "outcome": ("spoken", "sent", "taken", "played", "cut_short", "shown", "not_taken"),
    },
)
fetched: Final = CounterMetric(
    "fleet_clip_requests", "Requests of devices for clips.", "api", {"outcome": ("sent", "refused", "gone")}
)
