"""The terms of each kind of job."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fleet.core.job_kinds.agent import agent_terms
from fleet.core.job_kinds.announce import announce_terms
from fleet.core.job_kinds.calls import call_terms, collect_terms
from fleet.core.job_kinds.firmware import assets_terms, firmware_terms
from fleet.core.job_kinds.rotate_credentials import rotation_terms
from fleet.core.job_kinds.shadow import shadow_terms
from fleet.core.job_kinds.terms import JobTerms
from fleet.wire.job_states import JobKind

TERMS: Final[dict[JobKind, Callable[[Mapping[str, Any]], JobTerms]]] = {
    "tool": lambda body: call_terms(body["tool"], body["arguments"]),
    "reboot": lambda _: call_terms("self.reboot"),
    "announce": announce_terms,
    "rotate_credentials": lambda body: rotation_terms(body["key"]),
    "collect": lambda body: collect_terms(body["collect"]),
    "shadow": lambda body: shadow_terms(body["shadow"]),
    "agent": lambda _: agent_terms(),
    "firmware": lambda body: firmware_terms(body["firmware"]),
    "assets": lambda body: assets_terms(body["assets"]),
}


def terms_of(kind: JobKind, body: Mapping[str, Any]) -> JobTerms:
    """Return the terms of a job, given what is stored of its request besides query and policy."""
    return TERMS[kind](body)
