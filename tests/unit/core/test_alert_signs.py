"""What events say about the rules for alerts."""

from dataclasses import replace
from typing import Any

from fleet.core.alert_rules import terms_of
from fleet.core.alert_signs import TENANT_TOOLS, EventSign, Signs, Subject, read_signs
from fleet.wire.alert_names import ALERT_RULES

RULES = {rule: terms_of(rule, {}) for rule in ALERT_RULES}
OFF = {rule: replace(terms, enabled=False) for rule, terms in RULES.items()}


def event(kind: str, mac: int = 0, tenant: int = 1, **data: Any) -> EventSign:
    return EventSign(tenant, 120_000, kind, mac, data)


def signs(*events: EventSign) -> Signs:
    return read_signs(events, {1: RULES, 2: OFF})


def test_devices_that_connect_are_told_by_tenant_each_once() -> None:
    found = signs(*(event("device.online", mac, tenant) for mac, tenant in ((1, 1), (1, 1), (2, 1), (3, 2), (4, 9))))
    assert found.connected == {1: {1, 2}, 2: {3}}, "tenant 9 is unknown"


def test_calls_of_tools_count_by_minute_but_for_those_that_were_not_sent() -> None:
    outcomes = ("ok", "error", "unknown", "not_sent")
    found = signs(*(event("tool.called", 1, tenant, tool="t", outcome=one) for one in outcomes for tenant in (1, 2)))
    assert found.calls == {(1, "t", 2, False): 1, (1, "t", 2, True): 2}


def test_names_of_tools_are_bounded() -> None:
    names = [f"{number:06}{'x' * 200}" for number in range(TENANT_TOOLS + 5)]
    found = signs(event("tool.called"), *(event("tool.called", tool=name, outcome="ok") for name in names))
    assert len(found.calls) == TENANT_TOOLS
    assert {len(tool) for _, tool, _, _ in found.calls} == {128}


def test_a_job_breaks_its_rule_when_it_halts_or_too_many_devices_failed_and_until_it_goes_on() -> None:
    subject = Subject(1, "jobs", name="7")

    def text(kind: str, **data: Any) -> str | None:
        breach = signs(event("job.running"), event(kind, job=7, name="j", **data)).jobs[subject]
        return breach and breach.text

    assert text("job.halted", reason="3 of 20 failed") == "j halted: 3 of 20 failed"
    assert text("job.done", counts={"ok": 8, "error": 1, "unknown": 1}) == "j is done, 2 of 10 failed"
    assert text("job.done", counts={"ok": 9, "timed_out": 1}) is None
    assert text("job.done", counts={"expired": 5}) is None
    assert text("job.running") is None
    assert signs(event("job.halted", tenant=2, job=7)).jobs == {}
