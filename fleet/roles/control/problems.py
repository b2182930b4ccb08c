"""Errors of the API: `application/problem+json` (RFC 9457)."""

import http
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from fleet.adapters.sql.device_rows import VersionConflict
from fleet.adapters.sql.idempotency_rows import ReservationLost
from fleet.ground.errors import SlowQuery, Unavailable
from fleet.roles.control.request_ids import REQUEST_ID, request_id

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_MOST_ERRORS = 20
_SLOW = (
    "the database took too long for this query and was stopped; add a condition such as tag.KEY=VALUE, "
    "or use shorter patterns"
)


class Problem(HTTPException):
    """A refused request.

    Args:
        status: Of the answer.
        code: What went wrong, for programs: one of a fixed set, in small letters with hyphens.
        detail: What went wrong, for people. Holds no secret and nothing of another tenant.
        headers: Of the answer.
        errors: The faults of single fields, as `{"at": "body.name", "message": …}`.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.code = code
        self.errors = errors


def not_found(what: str) -> Problem:
    """Return the answer for an object that does not exist, or that belongs to another tenant."""
    return Problem(404, "not-found", f"there is no such {what}")


def add_problems(app: FastAPI) -> None:
    """Make every error of an app a problem, those of FastAPI and Starlette too."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(VersionConflict, _conflict)
    app.add_exception_handler(ReservationLost, _lost)
    app.add_exception_handler(Exception, _failed)


async def _refused(request: Request, error: Exception) -> Response:
    if isinstance(error, Problem):
        return _answer(request, error)
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    code = http.HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    detail = {404: "there is nothing at this path", 405: "this path has other methods"}.get(error.status_code)
    headers = {"Allow": _methods(request)} if error.status_code == http.HTTPStatus.METHOD_NOT_ALLOWED else error.headers
    return _answer(request, Problem(error.status_code, code, detail or str(error.detail), headers=headers))


def _methods(request: Request) -> str:
    """Return the methods of a path; Starlette names those of its first route."""
    found = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return ", ".join(sorted({method for route in found for method in route.methods}))


async def _invalid(request: Request, error: Exception) -> Response:
    """Name the faults without their values: these may be secrets."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    faults = error.errors()[:_MOST_ERRORS]
    found = [{"at": ".".join(map(str, fault["loc"]))[:200], "message": str(fault["msg"])[:200]} for fault in faults]
    detail = f"{found[0]['at']}: {found[0]['message']}" if found else "the request is not valid"
    return _answer(request, Problem(422, "invalid", detail, errors=found))


async def _unavailable(request: Request, error: Exception) -> Response:
    """Hide which part does not answer: its text may name addresses. The log has it."""
    log.warning("request not served", extra={"reason": str(error), "request": request_id(request)})
    if isinstance(error, SlowQuery):
        return _answer(request, Problem(503, "slow-query", _SLOW))
    return _answer(
        request,
        Problem(
            503, "unavailable", "the database or Redis does not answer now; try again", headers={"Retry-After": "2"}
        ),
    )


async def _conflict(request: Request, error: Exception) -> Response:
    return _answer(request, Problem(412, "version-conflict", str(error)))


async def _lost(request: Request, error: Exception) -> Response:
    return _answer(request, Problem(409, "key-in-use", str(error), headers={"Retry-After": "2"}))


async def _failed(request: Request, error: Exception) -> Response:
    return _answer(request, Problem(500, "failed", "the server failed; its log has the reason under the request id"))


def _answer(request: Request, problem: Problem) -> Response:
    number = request_id(request)
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": http.HTTPStatus(problem.status_code).phrase,
        "status": problem.status_code,
        "code": problem.code,
        "detail": str(problem.detail),
        "instance": request.url.path[:500],
        "request_id": number,
    }
    if problem.errors:
        body["errors"] = list(problem.errors)
    headers = {**(problem.headers or {}), REQUEST_ID: number}
    return Response(json.dumps(body).encode(), problem.status_code, headers, MEDIA_TYPE)
