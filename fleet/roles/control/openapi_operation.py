"""What the description of a route says beyond the shapes of its endpoint: errors, content types and headers."""

from typing import Any, Final

from fleet.roles.control.routing import ANY_SCOPE, OPEN, ControlRoute

_REFUSALS: Final = (400, 404, 408, 409, 412, 413, 422, 429, 500, 503)
"""Statuses that every route may answer."""
_CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_HEADERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "X-Request-Id": ("Id of the request in logs and audit log.", {"pattern": "^[A-Za-z0-9._-]{1,64}$"}),
    "Idempotency-Key": ("A repeated request with it gets the first answer.", {"pattern": "^[!-~]{1,200}$"}),
    "If-Match": ("ETag of the version to change; if it is not the newest: 412.", {"pattern": '^(\\*|"[0-9]{1,18}")$'}),
    "Last-Event-ID": ("Of a stream: the last event that the client has.", {"pattern": "^[0-9]{1,19}$"}),
}


def complete(operation: dict[str, Any], route: ControlRoute) -> None:
    """Complete the description of a route that FastAPI made."""
    scope, notes = route.terms.scope, route.notes
    statuses = [*_REFUSALS, *notes.refusals]
    if scope != OPEN:
        statuses.append(401)
        needed = "Needs any token." if scope == ANY_SCOPE else f"Needs the scope `{scope}`."
        operation["description"] = "\n\n".join(filter(None, (operation.get("description"), needed)))
    if scope not in (OPEN, ANY_SCOPE):
        statuses.append(403)
    answers = operation["responses"]
    if notes.gives:
        [success] = [status for status in answers if status < "300"]
        shaped = answers[success].get("content", {})
        answers[success]["content"] = {kind: shaped.get(kind) or {"schema": {"type": "string"}} for kind in notes.gives}
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status in sorted(set(statuses)):
        answers[str(status)] = {"description": "See `code`.", "content": problem}
    if notes.takes:
        content = {kind: {"schema": {"type": "string"}} for kind in notes.takes}
        operation["requestBody"] = {"required": True, "content": content}
    operation.setdefault("parameters", []).extend(map(_header, _headers(route)))


def _headers(route: ControlRoute) -> list[str]:
    terms = route.terms
    changing = not _CHANGING.isdisjoint(route.methods or ()) and not terms.repeatable
    keyed = changing and terms.scope != OPEN and not terms.streamed
    return ["X-Request-Id", *(["Idempotency-Key"] if keyed else []), *route.notes.headers]


def _header(name: str) -> dict[str, Any]:
    description, schema = _HEADERS[name]
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string", **schema}}
