"""`/console/`: the files of the console, a single page that uses only the API below `/v1`. They need no token."""

import base64
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from fleet.roles.control.problems import not_found
from fleet.roles.control.talk_places import TalkPlaces

CONSOLE: Final = Path(__file__).parent.parent / "console"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Files with other endings are not served."""
_POLICY = "Content-Security-Policy"
_COMMENTS = re.compile(rb"^[ \t]*(?://[^\n]*|/\*.*?\*/[ \t]*)$", re.MULTILINE | re.DOTALL)
"""Comments with lines of their own."""
_INDENTS = re.compile(rb"^[ \t]+", re.MULTILINE)
_IMPORT_MAP = re.compile(r'<script type="importmap">(?P<text>.*?)</script>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConsoleFile:
    """A file as it is sent."""

    body: bytes
    tag: str
    headers: tuple[tuple[str, str], ...]


class ConsoleRoutes:
    """Serves the console.

    Args:
        router: Of the app.
        talks: Where its page finds the gateway.
    """

    def __init__(self, router: APIRouter, talks: TalkPlaces) -> None:
        self._talks = talks
        router.add_api_route("/", self.lead, methods=["GET"], include_in_schema=False)
        router.add_api_route("/console", self.lead, methods=["GET"], include_in_schema=False)
        router.add_api_route("/console/{path:path}", self.read, methods=["GET"], include_in_schema=False)

    async def lead(self) -> Response:
        """Lead to the console. The address is relative, so that it also holds behind a proxy that adds a prefix."""
        return RedirectResponse("console/", 302)

    async def read(self, request: Request, path: str) -> Response:
        """Return a file of the console."""
        found = read_files().get(path or "index.html")
        if found is None:
            raise not_found("file")
        headers = {**dict(found.headers), "ETag": found.tag, "Vary": "Accept-Encoding"}
        if _POLICY in headers:
            headers[_POLICY] += f"; connect-src 'self' {' '.join(self._talks.of(request.url.hostname or ''))}"
        if request.headers.get("if-none-match") == found.tag:
            return Response(None, 304, headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(pack(found), 200, {**headers, "Content-Encoding": "gzip"})
        return Response(found.body, 200, headers)


@cache
def read_files() -> dict[str, ConsoleFile]:
    """Return all files of the console by their paths below `/console/`."""
    paths = (path for path in CONSOLE.rglob("*") if path.suffix in _KINDS and path.name != "packages.json")
    return {path.relative_to(CONSOLE).as_posix(): _read(path) for path in sorted(paths)}


@cache
def pack(file: ConsoleFile) -> bytes:
    """Return a file compressed."""
    return gzip.compress(file.body, 9, mtime=0)


def _read(path: Path) -> ConsoleFile:
    body = path.read_bytes()
    if path.suffix in (".js", ".css") and path.parent.name != "vendor":
        body = _shortened(body)
    headers = {
        "Content-Type": _KINDS[path.suffix],
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
        "Cross-Origin-Opener-Policy": "same-origin",
    }
    if path.suffix == ".html":
        headers[_POLICY] = _policy(body.decode())
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return ConsoleFile(body, tag, tuple(headers.items()))


def _shortened(body: bytes) -> bytes:
    """Return a file without comments and indents, an eighth of the console. Every line keeps its number."""
    return _INDENTS.sub(b"", _COMMENTS.sub(lambda found: b"\n" * found[0].count(b"\n"), body))


def _policy(html: str) -> str:
    """Return a policy that allows the console's own files, and its map of imports by its hash.

    To where the page may connect is added for each request.
    """
    maps = (hashlib.sha256(found["text"].encode()).digest() for found in _IMPORT_MAP.finditer(html))
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in maps)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {allowed}",
            "style-src 'self'",
            "img-src 'self' data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
