"""Calls about alerts."""

from fleet.client.call import Call
from fleet.wire.control.alerts import Alert, AlertRuleChange, AlertRuleList, AlertRuleTerms, AlertSubject
from fleet.wire.control.shapes import ListPage

AlertPage = ListPage[Alert]
SubjectPage = ListPage[AlertSubject]


def listing(*, only_open: bool = False, limit: int = 100) -> Call[AlertPage]:
    """List alerts, the newest first."""
    return Call("GET", "/alerts", AlertPage, {"limit": limit, "open": str(only_open).lower()})


def read(alert: int) -> Call[Alert]:
    """Read an alert."""
    return Call("GET", f"/alerts/{alert}", Alert)


def subjects(alert: int, limit: int = 500) -> Call[SubjectPage]:
    """List the devices, tools or jobs of an alert."""
    return Call("GET", f"/alerts/{alert}/subjects", SubjectPage, {"limit": limit})


def acknowledge(alert: int) -> Call[Alert]:
    """Close an alert."""
    return Call("POST", f"/alerts/{alert}:acknowledge", Alert)


def rules() -> Call[AlertRuleList]:
    """List the rules."""
    return Call("GET", "/alert-rules", AlertRuleList)


def change_rule(change: AlertRuleChange) -> Call[AlertRuleTerms]:
    """Change a rule."""
    return Call("PATCH", "/alert-rules", AlertRuleTerms, body=change)
