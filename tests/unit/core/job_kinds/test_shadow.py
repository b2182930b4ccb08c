"""The terms of jobs that change desired states."""

from fleet.core.desired_state import SETTERS, STATUS
from fleet.core.job_kinds.directory import terms_of
from fleet.core.permissions import DEVICES_COMMAND, DEVICES_DANGEROUS
from fleet.core.query.conditions import AllOf, Comparison, Negation


def test_devices_that_lack_what_is_set_are_skipped_and_what_is_removed_needs_nothing() -> None:
    terms = terms_of("shadow", {"shadow": {"desired": {"theme": "dark", "volume": None, "tools": {"self.lamp": {}}}}})
    assert list(terms.skips) == [f"it has no tool {SETTERS['theme'].tool}", "it has no tool self.lamp"]
    assert terms.evidence and terms.connected and terms.repeatable


def test_dangerous_tools_need_their_scope() -> None:
    for tool, scopes in (
        ("self.lamp.turn_on", (DEVICES_COMMAND,)),
        ("self.board.unknown", (DEVICES_COMMAND, DEVICES_DANGEROUS)),
    ):
        assert terms_of("shadow", {"shadow": {"desired": {"tools": {tool: {}}}}}).scopes == scopes
    assert terms_of("shadow", {"shadow": {"policies": {"volume": "watch"}}}).scopes == (DEVICES_COMMAND,)


def test_a_device_lacks_a_tool_only_if_its_tools_are_known() -> None:
    terms = terms_of("shadow", {"shadow": {"desired": {"tools": {"self.lamp": {}}}}})
    known, missing = Comparison("tool", "=", STATUS), Negation(Comparison("tool", "=", "self.lamp"))
    assert terms.skips == {"it has no tool self.lamp": AllOf((known, missing))}
