"""The kind `agent`: gives an agent to each device."""

from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import AGENTS_WRITE


def agent_terms() -> JobTerms:
    """Return the terms of a job that gives an agent to each device, connected or not."""
    return JobTerms(scopes=(AGENTS_WRITE,), connected=False)
