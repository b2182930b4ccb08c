"""What operators are told when a device's properties changed."""

from collections.abc import Mapping
from typing import Any

from fleet.core.desired_state import DesiredProperty, Properties

News = tuple[str, dict[str, Any]]
"""The kind of an event, and its data."""


def news_of(before: Properties, after: Properties, known: Mapping[str, Any], reported: Mapping[str, Any]) -> list[News]:
    """Return the events of a change, each kind at most once.

    Args:
        before: The properties before it.
        after: The properties after it.
        known: What the device had reported.
        reported: What it reports now.
    """
    found: list[News] = []
    changed = {name: value for name, value in reported.items() if known.get(name) != value}
    if changed:
        found.append(("state.changed", {"reported": changed}))
    turned = {name: one for name, one in after.items() if name not in before or before[name].state != one.state}
    confirmed = {name: one.value for name, one in turned.items() if one.state == "confirmed"}
    if confirmed:
        found.append(("state.confirmed", {"properties": confirmed}))
    refused = {name: one.text for name, one in turned.items() if one.state in ("refused", "unsupported", "unknown")}
    if refused:
        found.append(("state.refused", {"properties": refused}))
    drift = {name: _difference(one, reported.get(name)) for name, one in turned.items() if one.state == "drift"}
    if drift:
        found.append(("state.drift", {"properties": drift}))
    alerts = {name: _difference(one, reported.get(name)) for name, one in after.items() if _is_left(before, name, one)}
    if alerts:
        found.append(("alert.drift", {"properties": alerts}))
    return found


def _difference(one: DesiredProperty, reported: Any) -> dict[str, Any]:
    return {"desired": one.value, "reported": reported}


def _is_left(before: Properties, name: str, one: DesiredProperty) -> bool:
    return one.given_up and not (name in before and before[name].given_up)
