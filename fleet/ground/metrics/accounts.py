"""Sign-ins of operators."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric

sign_ins: Final = CounterMetric(
    "fleet_sign_ins",
    "Sign-ins to accounts; `limited` and `busy` ones had no password checked.",
    "control",
    {"outcome": ("ok", "wrong", "limited", "busy")},
)
