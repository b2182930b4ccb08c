"""The terms of jobs that give agents."""

from fleet.core.job_kinds.directory import terms_of
from fleet.core.permissions import AGENTS_WRITE


def test_every_device_gets_it_connected_or_not_and_it_needs_the_scope_of_agents() -> None:
    terms = terms_of("agent", {"agent": 7})
    assert (terms.scopes, terms.connected, terms.skips, terms.evidence) == ((AGENTS_WRITE,), False, {}, frozenset())
