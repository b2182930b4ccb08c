"""The rules for alerts: a small fixed set, each with thresholds that a tenant may change."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fleet.wire.alert_names import AlertRule


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number of a rule: what it is unless a tenant changes it, and its bounds."""

    default: float
    least: float
    most: float


THRESHOLDS: Final[Mapping[AlertRule, Mapping[str, Threshold]]] = {
    "flapping": {"connections": Threshold(6, 2, 1_000), "minutes": Threshold(10, 1, 120)},
    "silent": {"days": Threshold(7, 1, 365)},
    "drift": {},
    "tools": {
        "share": Threshold(0.5, 0.01, 1),
        "sample": Threshold(20, 1, 100_000),
        "minutes": Threshold(15, 1, 120),
    },
    "jobs": {"share": Threshold(0.1, 0, 1)},
    "waiting": {"hours": Threshold(24, 1, 2_160)},
}
MEANINGS: Final[Mapping[AlertRule, str]] = {
    "flapping": "A device connected `connections` times within `minutes`.",
    "silent": "A device has not been connected for `days`.",
    "drift": "A device differs from its desired state, and nothing corrects it now.",
    "tools": "More than `share` of the calls of a tool failed within `minutes`, of at least `sample` calls.",
    "jobs": "A job halted, or more than `share` of its devices failed when it was done.",
    "waiting": "A job has waited for a person, or for devices of its stage, for `hours`.",
}


@dataclass(frozen=True, slots=True)
class RuleTerms:
    """What a rule is for one tenant."""

    enabled: bool = True
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """All of the rule's thresholds."""


def terms_of(rule: AlertRule, stored: Mapping[str, float], *, enabled: bool = True) -> RuleTerms:
    """Return the terms of a rule, given what a tenant changed; names that the rule has not are left out."""
    return RuleTerms(enabled, {name: stored.get(name, one.default) for name, one in THRESHOLDS[rule].items()})


def misfit(rule: AlertRule, thresholds: Mapping[str, float]) -> str:
    """Return what is wrong with thresholds that a person gives; empty if nothing is."""
    for name, value in thresholds.items():
        known = THRESHOLDS[rule].get(name)
        if known is None:
            return f"the rule {rule} has no {name}; it has {', '.join(THRESHOLDS[rule])}"
        if not known.least <= value <= known.most:
            return f"{name} is from {known.least:g} to {known.most:g}"
    return ""
