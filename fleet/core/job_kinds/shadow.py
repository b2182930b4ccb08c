"""The kind `shadow`: changes the desired state of each device, and waits until it is confirmed."""

from collections.abc import Mapping
from typing import Any, Final

from fleet.core.desired_state import SETTERS, STATUS
from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS
from fleet.core.query.conditions import AllOf, Comparison, Condition, Negation
from fleet.core.tool_policy import risk_of

CONFIRMED: Final = "state.confirmed"
DRIFT: Final = "state.drift"
REFUSED: Final = "state.refused"


def shadow_terms(change: Mapping[str, Any]) -> JobTerms:
    """Return the terms of a job, given the change of the desired state that it makes."""
    desired = change.get("desired", {})
    tools = [name for name, arguments in (desired.get("tools") or {}).items() if arguments is not None]
    dangerous = any(risk_of(name, "device") == "dangerous" for name in tools)
    needed = [SETTERS[name].tool for name, value in desired.items() if name in SETTERS and value is not None]
    return JobTerms(
        scopes=(DEVICES_COMMAND, DEVICES_DANGEROUS) if dangerous else (DEVICES_COMMAND,),
        skips={f"it has no tool {tool}": _without(tool) for tool in (*needed, *tools)},
        evidence=frozenset({CONFIRMED, DRIFT, REFUSED}),
        silence="the device did not confirm it",
    )


def _without(tool: str) -> Condition:
    """Return the condition of devices whose tools are known, without this one."""
    return AllOf((Comparison("tool", "=", STATUS), Negation(Comparison("tool", "=", tool))))
