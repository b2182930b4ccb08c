"""What a stored job means: its terms, its policy, its devices."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.job_targets import JobTarget
from fleet.core.job_kinds.directory import terms_of
from fleet.core.job_kinds.terms import JobTerms
from fleet.core.query.fields import DEVICE_FIELDS
from fleet.core.query.parser import parse
from fleet.core.rollout import Policy, Stage
from fleet.roles.control.problems import Problem
from fleet.wire.control.jobs import JobPolicy, JobRequest
from fleet.wire.job_states import COMMAND, FAILURES, ExecutionState


def body_of(job: JobRequest) -> dict[str, Any]:
    """Return what is stored of a request besides query and policy."""
    shadow = job.shadow.model_dump(mode="json", exclude_unset=True) if job.shadow else None
    parts = {"shadow": shadow, "agent": job.agent, "key": job.key or None}
    more = {name: value for name, value in parts.items() if value is not None}
    return {"tool": job.tool, "arguments": job.arguments, "collect": job.collect, **more}


def terms_of_job(job: JobRow) -> JobTerms:
    """Return the terms of a stored job."""
    return terms_of(job.kind, job.body)


def policy_of(job: JobRow) -> Policy:
    """Return the policy of a stored job."""
    asked = JobPolicy.model_validate(dict(job.policy), extra="ignore")
    repeatable = terms_of_job(job).repeatable if asked.repeatable is None else asked.repeatable
    return Policy(
        stages=tuple(
            Stage(
                share=one.share or 0.0,
                count=one.count or 0,
                query=one.query or "",
                success=one.min_success,
                sample=one.min_sample,
                soak_ms=one.soak_seconds * 1000,
                approve=one.approve,
            )
            for one in asked.stages
        ),
        rate=asked.rate,
        window=asked.window,
        halt_share=asked.halt_share,
        halt_sample=asked.halt_sample,
        within_ms=asked.timeout_seconds * 1000,
        retries=asked.retries,
        retry_ms=asked.retry_seconds * 1000,
        repeatable=repeatable,
        idle=asked.idle,
        quiet=asked.quiet,
    )


def states_to_retry(job: JobRow, chosen: Collection[ExecutionState] | None) -> Collection[ExecutionState]:
    """Return in which states executions are tried again that an operator chose, or those of the policy.

    Raises:
        Problem: It is a command, which is sent at most once (409), or what is in such a state did not fail (422).
    """
    if job.name == COMMAND:
        raise Problem(409, "sent-once", "a command is sent at most once: make another one")
    sure = frozenset[ExecutionState]({"error", "timed_out"})
    states = frozenset(chosen) if chosen is not None else FAILURES if policy_of(job).repeatable else sure
    if not states <= FAILURES:
        raise Problem(422, "invalid", f"states that can be tried again are {', '.join(sorted(FAILURES))}")
    return states


def target_of(tenant: int, query: str, terms: JobTerms, policy: JobPolicy, created_ms: int) -> JobTarget:
    """Return the devices of a job; times in its query such as `-7d` count from when it begins.

    Raises:
        QueryError: The query, or that of a stage, cannot be read.
    """
    at = datetime.fromtimestamp(created_ms / 1000, UTC)
    first = tuple(parse(one.query, DEVICE_FIELDS, at) for one in policy.stages if one.query)
    return JobTarget(tenant, parse(query, DEVICE_FIELDS, at), terms.tool, first, terms.skips)


def target_of_job(job: JobRow) -> JobTarget:
    """Return the devices of a stored job."""
    policy = JobPolicy.model_validate(dict(job.policy), extra="ignore")
    return target_of(job.tenant, job.query, terms_of_job(job), policy, job.starts or job.created)
