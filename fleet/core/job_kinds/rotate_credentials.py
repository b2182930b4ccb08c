"""The kind `rotate_credentials`: a restart, so that a device fetches a password of the key that signs now."""

from dataclasses import replace
from typing import Final

from fleet.core.job_kinds.calls import call_terms
from fleet.core.job_kinds.terms import JobTerms
from fleet.core.query.conditions import Comparison

HAS_IT: Final = "the device has this key"


def rotation_terms(key: str) -> JobTerms:
    """Return the terms of a job that moves devices to a key, given its id."""
    return replace(
        call_terms("self.reboot"),
        skips={HAS_IT: Comparison("key", "=", key)},
        evidence=frozenset({"device.online"}),
        silence="the device did not connect with the new key",
    )
