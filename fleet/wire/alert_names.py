"""The names of the rules for alerts."""

from typing import Final, Literal, get_args

AlertRule = Literal["flapping", "silent", "drift", "tools", "jobs", "waiting"]
ALERT_RULES: Final[tuple[AlertRule, ...]] = get_args(AlertRule)
DEVICE_RULES: Final[frozenset[AlertRule]] = frozenset({"flapping", "silent", "drift"})
"""Rules about devices: those that many devices break at about the same time become one alert."""
