"""The web test client at /test: one page without external files, made from the files in pages/."""

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files

TEST_PATH = "/test"

_STYLE = re.compile(r'<link rel="stylesheet" href="(?P<name>[a-z]+\.css)">')
_SCRIPT = re.compile(r'<script src="(?P<name>[a-z]+\.js)"></script>')


@dataclass(frozen=True, slots=True)
class Page:
    """An answer to an HTTP request.

    Attributes:
        headers: Besides Content-Type and Content-Length.
    """

    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def answer(path: str) -> Page | None:
    """Return the answer to a GET request without `Upgrade`, or None if there is no page at this path.

    Args:
        path: The request's target; the script of the page reads the query.
    """
    match path.partition("?")[0]:
        case "/":
            # Relative, so that it also works behind a proxy that adds a prefix.
            return Page(HTTPStatus.FOUND, "text/plain; charset=utf-8", (("Location", TEST_PATH[1:]),), b"")
        case "/test" | "/test/":
            return _test_page()
        case _:
            return None


@cache
def _test_page() -> Page:
    hashes: dict[str, list[str]] = {"style": [], "script": []}

    def embed(tag: str) -> Callable[[re.Match[str]], str]:
        def replace(found: re.Match[str]) -> str:
            source = _read(found["name"])
            hashes[tag].append(_hash(source))
            return f"<{tag}>{source}</{tag}>"

        return replace

    html = _SCRIPT.sub(embed("script"), _STYLE.sub(embed("style"), _read("test.html")))
    headers = (
        ("Content-Security-Policy", _policy(hashes["style"], hashes["script"])),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-cache"),
    )
    return Page(HTTPStatus.OK, "text/html; charset=utf-8", headers, html.encode())


def _read(name: str) -> str:
    return (files("fleet.roles.gateway.port") / "pages" / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Return a policy that allows the page's scripts and styles, its icon, and WebSockets to any gateway."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(scripts)}",
            f"style-src {' '.join(styles)}",
            "img-src data:",
            "connect-src ws: wss:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
        )
    )
