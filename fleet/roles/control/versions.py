"""ETag and If-Match: a change that says which version it is of."""

import re

from fastapi import Request

from fleet.roles.control.problems import Problem

_TAG = re.compile(r'"(\d{1,18})"')


def etag(version: int) -> str:
    """Return the ETag of a version."""
    return f'"{version}"'


def expected_version(request: Request) -> int | None:
    """Return the version that a change is of; None if it is of any.

    Raises:
        Problem: The header is malformed, or sent twice (400).
    """
    sent = request.headers.getlist("if-match")
    named = ", ".join(sent).strip()
    if not sent or named == "*":
        return None
    found = _TAG.fullmatch(named)
    if found is None:
        raise Problem(400, "bad-etag", 'If-Match must hold an ETag that was given, such as "7"')
    return int(found[1])
