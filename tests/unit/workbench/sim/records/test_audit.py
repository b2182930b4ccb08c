import re
from pathlib import Path

import pytest

import fleet.workbench.sim
from fleet.workbench.sim.records.audit import KEPT_PER_RULE, RULES, Audit
from fleet.workbench.sim.records.journal import Journal


def test_a_rule_that_does_not_exist_is_a_fault_of_the_simulator() -> None:
    with pytest.raises(KeyError):
        Audit().record(0.0, "no-such-rule", "")
    with pytest.raises(KeyError):
        Audit(frozenset({"no-such-rule"}))


def test_a_flood_of_breaches_is_counted_but_not_kept() -> None:
    audit = Audit()
    for _ in range(1000):
        audit.record(1.0, "underrun", "x")
    assert audit.counts == {"underrun": 1000}
    assert len(audit.violations) == KEPT_PER_RULE


def test_an_ignored_rule_leaves_no_trace() -> None:
    journal = Journal(lambda: 0.0, frozenset({"pause"}))
    journal.violate("pause", "x")
    journal.violate("underrun", "y")
    assert [one.rule for one in journal.audit.violations] == ["underrun"]
    assert [step.detail["rule"] for step in journal.find("violation")] == ["underrun"]


def test_every_rule_is_checked_somewhere_and_every_checked_rule_exists() -> None:
    folder = Path(fleet.workbench.sim.__file__).parent
    source = "".join(path.read_text() for path in folder.rglob("*.py") if path.name != "audit.py")
    assert [rule for rule in RULES if f'"{rule}"' not in source] == []
    assert set(re.findall(r'(?:violate\(|yield )\s*"([a-z-]+)"', source)) <= RULES.keys()


def test_steps_are_told_at_once_and_kept_in_their_own_time() -> None:
    told: list[str] = []
    journal = Journal(lambda: 7.0, on_step=lambda step: told.append(step.name))
    journal.note("now")
    journal.note("earlier", 6.5)
    assert told == ["now", "earlier"]
    assert [step.at for step in journal.steps] == [0.0, -0.5]
