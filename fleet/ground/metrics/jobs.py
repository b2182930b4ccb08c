"""Jobs over many devices."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.gauge import GaugeMetric

executions: Final = CounterMetric(
    "fleet_job_executions",
    "Calls of jobs that ended, by what became of the execution; `waiting` ones will be made again.",
    "control",
    {"state": ("ok", "error", "unknown", "timed_out", "expired", "waiting")},
)
active: Final = GaugeMetric("fleet_jobs_active", "Jobs that are not over.", "control")
