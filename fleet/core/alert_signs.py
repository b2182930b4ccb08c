"""What events say about the rules for alerts. Pure: whoever reads the events keeps what they add up to."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fleet.core.alert_rules import RuleTerms
from fleet.wire.alert_names import AlertRule
from fleet.wire.job_states import FAILURES

TENANT_TOOLS: Final = 100
"""Different tools of a tenant whose calls are counted at a time: their names come from devices."""
LONGEST_NAME: Final = 128
JOB_KINDS: Final = (
    *("job.running", "job.stage", "job.approval", "job.paused"),
    *("job.halted", "job.stopping", "job.stopped", "job.done", "job.deleted"),
)
KINDS: Final = ("device.online", "tool.called", *JOB_KINDS)
"""The events that rules look at."""
_CALL_FAILURES: Final = frozenset({"error", "unknown"})
Rules = Mapping[AlertRule, RuleTerms]


@dataclass(frozen=True, slots=True)
class Subject:
    """What breaks a rule: a device, or with MAC 0 a tool or job by its name."""

    tenant: int
    rule: AlertRule
    mac: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Breach:
    """A subject that breaks its rule.

    `text` says how, without a MAC. `until` is when it is over unless it happens again, in ms; None: until that is told.
    """

    subject: Subject
    text: str
    until: int | None = None


@dataclass(frozen=True, slots=True)
class EventSign:
    """An event, as far as rules look at it."""

    tenant: int
    at: int
    kind: str
    mac: int
    data: Mapping[str, Any]


@dataclass(slots=True)
class Signs:
    """What some events say together."""

    connected: dict[int, set[int]] = field(default_factory=dict)
    """MACs of devices that connected, by tenant."""
    calls: Counter[tuple[int, str, int, bool]] = field(default_factory=Counter)
    """Calls of tools by tenant, name, minute since 1970, and whether they failed."""
    jobs: dict[Subject, Breach | None] = field(default_factory=dict)
    """Jobs that break their rule now, and with None those that do not."""


def read_signs(events: Iterable[EventSign], rules: Mapping[int, Rules]) -> Signs:
    """Return what events say; of rules that are off, nothing.

    Args:
        events: In their order; the newest one about a job counts.
        rules: By tenant.
    """
    signs = Signs()
    tools: dict[int, set[str]] = {}
    for one in events:
        known = rules.get(one.tenant)
        if known is None:
            continue
        if one.kind == "device.online":
            signs.connected.setdefault(one.tenant, set()).add(one.mac)
        elif one.kind == "tool.called" and known["tools"].enabled:
            _count_call(signs, tools.setdefault(one.tenant, set()), one)
        elif one.kind in JOB_KINDS and known["jobs"].enabled:
            subject = Subject(one.tenant, "jobs", name=str(one.data.get("job", ""))[:LONGEST_NAME])
            signs.jobs[subject] = _job_breach(subject, one, known["jobs"])
    return signs


def _count_call(signs: Signs, tools: set[str], one: EventSign) -> None:
    name, outcome = str(one.data.get("tool", ""))[:LONGEST_NAME], one.data.get("outcome")
    if outcome == "not_sent" or not name or (name not in tools and len(tools) >= TENANT_TOOLS):
        return  # Not sent: the device was away or busy, its tool did not fail.
    tools.add(name)
    signs.calls[one.tenant, name, one.at // 60_000, outcome in _CALL_FAILURES] += 1


def _job_breach(subject: Subject, one: EventSign, terms: RuleTerms) -> Breach | None:
    name = one.data.get("name", "")
    if one.kind == "job.halted":
        return Breach(subject, f"{name} halted: {one.data.get('reason', '')}")
    if one.kind == "job.done":
        counts = one.data.get("counts") or {}
        failed = sum(int(counts.get(state, 0)) for state in FAILURES)
        ended = failed + int(counts.get("ok", 0))
        if failed > terms.thresholds["share"] * ended:
            return Breach(subject, f"{name} is done, {failed} of {ended} failed")
    return None
