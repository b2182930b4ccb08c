"""`/v1/openapi.json`, and a page that shows it; both need no token."""

import hashlib
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi

from fleet.core.permissions import MEANINGS
from fleet.roles.control.openapi_operation import complete
from fleet.roles.control.routing import OPEN, ControlRoute, Routes

_PAGE = Path(__file__).parent.parent / "page"
_KINDS = {"docs": "text/html; charset=utf-8", "docs.js": "text/javascript", "docs.css": "text/css"}
_FILES = {"docs": "docs.html", "docs.js": "docs.js", "docs.css": "docs.css"}
_POLICY = (
    *("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'"),
    *("form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"),
)
_SAFE = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_COOKIE = (
    "Set by `POST /v1/session`; its name ends with the port of control, and has no `__Host-` on HTTP. A request that "
    "changes something also needs the `Origin` of control, which browsers send."
)
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "description": "What went wrong, for programs."},
        "detail": {"type": "string", "description": "What went wrong, for people."},
        "instance": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}, "description": "Faults of single fields."},
    },
}


class OpenApiRoutes:
    """Describes all routes of an app that were added so far or come later.

    Args:
        app: The app.
        routes: Adds the routes.
    """

    def __init__(self, app: FastAPI, routes: Routes) -> None:
        self._app = app
        routes.add("GET /openapi.json", self.read, OPEN, hidden=True)
        for path in _FILES:
            routes.add(f"GET /{path}", self._file(path), OPEN, hidden=True)

    async def read(self, request: Request) -> Response:
        """Return the description of the API in OpenAPI 3.1."""
        text, tag = self._document
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(text, 200, headers, "application/json")

    @cached_property
    def _document(self) -> tuple[bytes, str]:
        text = json.dumps(describe(self._app), separators=(",", ":")).encode()
        return text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'

    def _file(self, path: str) -> Any:
        async def show() -> Response:
            """Return a part of the page that shows the API."""
            return Response((_PAGE / _FILES[path]).read_bytes(), 200, _SAFE, _KINDS[path])

        show.__name__ = f"show_{path.replace('.', '_')}"
        return show


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the description of an app."""
    routes = [route for route in app.routes if isinstance(route, ControlRoute)]
    found = get_openapi(
        title="fleet control",
        version="1",
        openapi_version="3.1.0",
        description="Registry, agents and everything that people decide about a fleet of voice devices.",
        routes=routes,
    )
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = _PROBLEM
    scopes = ", ".join(f"`{scope}`: {meaning}" for scope, meaning in MEANINGS.items())
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": f"Scopes: {scopes}"},
        "session": {"type": "apiKey", "in": "cookie", "name": "__Host-fleet-8003", "description": _COOKIE},
    }
    for route in routes:
        for method in (route.methods or ()) if route.include_in_schema else ():
            complete(found["paths"][route.path_format][method.lower()], route)
    return found
