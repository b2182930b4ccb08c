"""Routes with their scopes: each declares what it needs, and nothing runs before that was checked."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypedDict, Unpack

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from fleet.roles.control.access import ANY_SCOPE, TokenAccess
from fleet.roles.control.problems import Problem
from fleet.wire.control.strict_json import UnfitJson, read_json
from fleet.wire.json_text import count_values

__all__ = ["ANY_SCOPE", "OPEN", "VERSIONED", "ControlRoute", "RouteNotes", "Routes"]

OPEN: Final = ""
"""The scope of a route that needs no token."""
LARGEST_BODY = 1_000_000
"""Bytes of a request, unless its route has another bound."""
MOST_VALUES = 3_000
"""Values in the JSON of a request. To find fault with each takes up to 50 ms; the largest attributes have fewer."""
BODY_SECONDS = 20.0
_MOST_READ = 4
"""A body of up to so many times its bound is read to its end, so that the client reads the answer."""

_NO_BODIES = (b"", b"{}", b"null")
"""What a request to a route without a body may send: some programs send something with each request."""

Endpoint = Callable[..., Any]
Handle = Callable[[Request], Coroutine[Any, Any, Response]]
Gate = Callable[[Request], None]
"""Raises a `Problem` for a request whose body is not worth reading."""


class Middle(Protocol):
    """Runs between the check of a token and the endpoint."""

    async def __call__(self, request: Request, body: bytes, handle: Handle) -> Response: ...


class RouteOptions(TypedDict, total=False):
    """What few routes need."""

    model: Any
    """Of the answer, if the endpoint returns a Response."""
    status: int
    """Of a successful answer; 200 unless named."""
    streamed: bool
    """Whether the endpoint reads the body itself, piece by piece; it then bounds it."""
    largest_body: int
    """Bytes; `LARGEST_BODY` unless named."""
    secret: bool
    """Whether the body holds a password: a key for repeated requests then does not depend on it."""
    gate: Gate
    """Asked before the body is read; for routes that need no token."""
    repeatable: bool
    """Whether it changes nothing: a repeated request runs again, and no answer is kept."""
    hidden: bool
    """Whether the documentation leaves the route out."""
    notes: "RouteNotes"
    """What the documentation says beyond the shapes of the endpoint."""


@dataclass(frozen=True, slots=True)
class RouteNotes:
    """What only some routes have."""

    takes: tuple[str, ...] = ()
    """Content types of the request, if it is no JSON."""
    gives: tuple[str, ...] = ()
    """Content types of the answer, if it is not only JSON."""
    refusals: tuple[int, ...] = ()
    """Statuses of errors."""
    headers: tuple[str, ...] = ()
    """Headers of the request that count."""


VERSIONED: Final = RouteNotes(headers=("If-Match",))
"""Of routes whose endpoint calls `versions.expected_version`."""


@dataclass(frozen=True, slots=True)
class RouteTerms:
    """What a route demands of a request before its endpoint runs; see `Routes.add`."""

    scope: str
    streamed: bool
    largest_body: int
    gate: Gate | None
    secret: bool
    access: TokenAccess
    middle: Middle
    repeatable: bool


class ControlRoute(APIRoute):
    """A route that checks the token before it reads the body; `Routes` makes them."""

    def __init__(self, path: str, endpoint: Endpoint, terms: RouteTerms, notes: RouteNotes, **more: Any) -> None:
        self.terms, self.notes = terms, notes
        super().__init__(path, endpoint, **more)
        self._parameters = frozenset(
            name for one in self.dependant.query_params for name in _names(one.alias, one.field_info.annotation)
        )
        """What a query may name. A change with another parameter is refused: a misspelt bound would bound nothing."""

    def get_route_handler(self) -> Handle:
        inner, terms = super().get_route_handler(), self.terms

        async def handle(request: Request) -> Response:
            if "\0" in request.scope["path"] or b"%00" in request.scope["query_string"]:
                raise _nul()
            headers = {"X-Content-Type-Options": "nosniff"}
            if terms.scope != OPEN:
                principal = await terms.access.admit(request, terms.scope)
                request.state.principal = principal
                headers |= terms.access.limits(principal)
            _check_parameters(request, None if request.method == "GET" else self._parameters)
            if terms.gate is not None:
                terms.gate(request)
            if terms.streamed:
                response = await inner(request)
            else:
                body = await _read(request, terms.largest_body)
                if _has_nul(body):
                    raise _nul()
                if self.body_field is None and body.strip() not in _NO_BODIES:
                    raise Problem(422, "invalid", "body: none is expected here; see /v1/openapi.json for parameters")
                again = _ReadRequest(request.scope, _replay(body, request.receive))
                # What is kept of the body is a fast hash, from which a password could be guessed.
                kept = b"" if terms.secret else body
                response = await (inner(again) if terms.repeatable else terms.middle(again, kept, inner))
            response.headers.update(headers)
            return response

        return handle


class _ReadRequest(Request):
    """A request whose body was read; FastAPI asks it for its JSON."""

    async def json(self) -> Any:
        body = await self.body()
        if count_values(body) > MOST_VALUES:
            raise Problem(413, "too-large", f"a request has at most {MOST_VALUES} values")
        try:
            return read_json(body)
        except UnfitJson as error:
            raise Problem(422, "invalid", f"body: {error}") from error


class Routes:
    """Adds the routes of the API to an app.

    Args:
        router: Of the app.
        access: Checks tokens.
        middle: Runs between the check and the endpoint.
    """

    def __init__(self, router: APIRouter, access: TokenAccess, middle: Middle) -> None:
        self._router, self._access, self._middle = router, access, middle

    def add(self, verb: str, endpoint: Endpoint, scope: str, **more: Unpack[RouteOptions]) -> None:
        """Add a route.

        Args:
            verb: Method and path below `/v1`, such as `GET /devices/{mac}`. The first word of the path is the tag.
            endpoint: An async function with typed parameters; its docstring goes into the documentation.
            scope: Of `fleet.core.permissions`, or `OPEN`, or `ANY_SCOPE`.
            more: See `RouteOptions`.
        """
        method, _, path = verb.partition(" ")
        largest_body = more.get("largest_body", LARGEST_BODY)
        terms = RouteTerms(
            scope,
            more.get("streamed", False),
            largest_body,
            more.get("gate"),
            more.get("secret", False),
            self._access,
            self._middle,
            more.get("repeatable", False),
        )
        security: list[dict[str, list[str]]] = [] if scope == OPEN else [{"token": []}, {"session": []}]
        self._router.routes.append(
            ControlRoute(
                f"/v1{path}",
                endpoint,
                terms,
                more.get("notes", RouteNotes()),
                methods=[method],
                status_code=more.get("status", 200),
                include_in_schema=not more.get("hidden", False),
                tags=[path.strip("/").partition("/")[0].partition(":")[0]],
                openapi_extra={"x-scope": scope, "security": security},
                **({"response_model": more["model"]} if "model" in more else {}),
            )
        )


def _has_nul(body: bytes) -> bool:
    """Whether JSON has a NUL character, as itself or as an escape."""
    return b"\0" in body or b"\\u0000" in body.replace(b"\\\\", b"")


def _nul() -> Problem:
    """Return the answer for a request with the one character that PostgreSQL cannot keep."""
    return Problem(400, "invalid", "a request must not hold NUL characters")


def _names(alias: str, shape: Any) -> Iterable[str]:
    """Return the parameters of an endpoint's argument: its own name, or those of a model."""
    return shape.model_fields if isinstance(shape, type) and issubclass(shape, BaseModel) else (alias,)


def _check_parameters(request: Request, known: Collection[str] | None) -> None:
    """Refuse a query that names a parameter twice, for nobody could tell which one counts, or one that is not known.

    Args:
        request: Any.
        known: The parameters; None for any.

    Raises:
        Problem: It does (422).
    """
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        fault = "is named twice" if count > 1 else "is not known" if known is not None and name not in known else ""
        if fault:
            where = f"query.{name}"[:200]
            raise Problem(422, "invalid", f"{where}: {fault}", errors=[{"at": where, "message": fault}])


async def _read(request: Request, limit: int) -> bytes:
    """Return the body.

    Raises:
        Problem: It is too large (413), did not come in time (408), or broke off (400).
    """
    named = request.headers.get("content-length", "")
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            if not named.isdigit() or int(named[:20]) <= _MOST_READ * limit:
                async for piece in request.stream():
                    size += len(piece)
                    if size <= limit:
                        body += piece
                    elif size > _MOST_READ * limit:
                        break
                if size <= limit:
                    return bytes(body)
    except TimeoutError:
        raise Problem(408, "too-slow", "the request did not come in time", headers={"Connection": "close"}) from None
    except ClientDisconnect:
        raise Problem(400, "broken-off", "the request broke off") from None
    raise Problem(413, "too-large", f"a request has at most {limit} bytes", headers={"Connection": "close"})


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body that was read already, and then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
