"""The kind `announce`: each device is told a text, by the best way that it has."""

from collections.abc import Mapping
from typing import Any

from fleet.core.job_kinds.terms import JobTerms
from fleet.core.permissions import DEVICES_COMMAND
from fleet.core.tool_kinds import kind_of
from fleet.wire.announcements import TOOL


def announce_terms(body: Mapping[str, Any]) -> JobTerms:
    """Return the terms of an announcement, which is stored as it is shown."""
    return JobTerms(
        arguments=body,
        scopes=(DEVICES_COMMAND,),
        repeatable=False,
        seconds=kind_of(TOOL).seconds,
        sessions="wake" in body["ways"],
        recalled=True,
    )
