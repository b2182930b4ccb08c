"""Alerts and their rules, as the API of control gives and takes them."""

from typing import Annotated

from pydantic import ConfigDict, Field

from fleet.wire.alert_names import AlertRule
from fleet.wire.control.shapes import NUMBER, Shape, Time


class Alert(Shape):
    """An alert. `closed_by` is empty if it closed by itself, or is open.

    `subjects` is how many devices, tools or jobs were part of it, `present` how many still break the rule; `text` says
    how the first one did.
    """

    id: int
    rule: AlertRule
    opened: Time
    closed: Time | None
    closed_by: str
    subjects: int
    present: int
    text: str


class AlertSubject(Shape):
    """A part of an alert: a device by its MAC, a tool by its name, or a job by its number. `over`: it is no more."""

    device: str
    name: str
    since: Time
    over: Time | None
    text: str


class AlertRuleTerms(Shape):
    """A rule of the tenant."""

    rule: AlertRule
    meaning: str
    enabled: bool
    thresholds: dict[str, float]


class AlertRuleList(Shape):
    """The rules of the tenant."""

    items: list[AlertRuleTerms]


class AlertRuleChange(Shape):
    """What becomes different of a rule; what is not named stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"rule": "silent", "thresholds": {"days": 3}}]})

    rule: AlertRule
    enabled: bool | None = None
    thresholds: Annotated[
        dict[str, Annotated[float, Field(allow_inf_nan=False), NUMBER]], Field(default_factory=dict, max_length=10)
    ]
