"""Changes of a desired state: a JSON merge patch (RFC 7396) of its document, and policies of its properties."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleet.core.desired_state import TOOLS, DesiredProperty, Properties
from fleet.wire.property_states import PropertyPolicy

_UNDER_WAY = ("pending", "confirmed")


def merge(target: Any, patch: Any) -> Any:
    """Return a JSON value after a merge patch: null removes, objects are merged, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def document_of(properties: Properties) -> dict[str, Any]:
    """Return the desired state as people write it: the calls of boards' tools stand under `tools`."""
    plain = {name: one.value for name, one in properties.items() if not name.startswith(TOOLS)}
    tools = {name.removeprefix(TOOLS): one.value for name, one in properties.items() if name.startswith(TOOLS)}
    return {**plain, **({"tools": tools} if tools else {})}


def patched(
    properties: Properties,
    patch: Mapping[str, Any],
    policies: Mapping[str, PropertyPolicy | None],
    version: int,
    now: int,
    origin: str = "",
) -> dict[str, DesiredProperty]:
    """Return the properties after a change.

    A value that is named again though the device has it is left alone; one that somebody changed is set again.

    Args:
        properties: As they are.
        patch: Of the document.
        policies: By the names of properties; None makes it `once` again.
        version: Of the desired state after the change.
        now: In ms since 1970.
        origin: Who changes it; a value that the same one has set before is left alone.
    """
    document = merge(document_of(properties), patch)
    tools = document.pop("tools", {})
    wanted = {**document, **{TOOLS + name: arguments for name, arguments in tools.items()}}
    named = {*patch, *(TOOLS + name for name in patch.get("tools") or {})}
    after: dict[str, DesiredProperty] = {}
    for name, value in wanted.items():
        known = properties.get(name)
        if known is None:
            known = DesiredProperty(value, version=version, since=now, origin=origin)
        elif known.value != value or (name in named and not _is_set(known, origin)):
            known = DesiredProperty(value, known.policy, version, since=now, origin=origin)
        after[name] = known
    for name, policy in policies.items():
        if name in after and after[name].policy != (policy or "once"):
            after[name] = _under(after[name], policy or "once", version, now)
    return after


def _is_set(one: DesiredProperty, origin: str) -> bool:
    return one.state in _UNDER_WAY or (origin != "" and one.origin == origin)


def _under(one: DesiredProperty, policy: PropertyPolicy, version: int, now: int) -> DesiredProperty:
    """Return a property under another policy, which judges anew what is not as it should be."""
    if one.state == "confirmed":
        return replace(one, policy=policy)
    return replace(one.turned("pending", now), policy=policy, version=version, given_up=False)
