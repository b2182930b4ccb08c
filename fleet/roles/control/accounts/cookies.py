"""The cookies of control: of a sign-in, and of a browser that signed in to an account before."""

import base64
import hmac
import secrets
from typing import Final

from fastapi import Request, Response

from fleet.roles.control.accounts.own_page import host_of, is_https

KNOWN_SECONDS: Final = 180 * 86_400
_SECRET_LENGTH = 43
_SESSION, _KNOWN = "fleet", "fleet-known"


def new_secret() -> str:
    """Return the secret of a new sign-in: 256 random bits."""
    return secrets.token_urlsafe(32)


def session_secret(request: Request) -> str:
    """Return the secret that a request's cookie has; empty without one, or with several."""
    found = _read(request, _SESSION)
    return found if len(found) == _SECRET_LENGTH else ""


def set_session(request: Request, response: Response, secret: str, seconds: int) -> None:
    """Give a browser the cookie of a sign-in."""
    _set(request, response, _SESSION, secret, seconds)


def end_session(request: Request, response: Response) -> None:
    """Take the cookie of a sign-in from a browser."""
    _set(request, response, _SESSION, "", 0)


class KnownBrowsers:
    """Signs cookies that say to which account a browser has signed in.

    So failures of strangers do not lock out who has signed in before.

    Args:
        key: Signs; all processes of control have the same one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def remember(self, request: Request, response: Response, account: int) -> None:
        """Give a browser a cookie for an account."""
        text = f"{account}.{secrets.token_urlsafe(12)}"
        _set(request, response, _KNOWN, f"{text}.{self._sign(text)}", KNOWN_SECONDS)

    def recognise(self, request: Request) -> tuple[int, str]:
        """Return the account that a request's cookie names, and its number; 0 and empty without a right one."""
        text, _, signature = _read(request, _KNOWN)[:200].rpartition(".")
        if not text or not hmac.compare_digest(signature.encode(), self._sign(text).encode()):
            return 0, ""
        account, _, number = text.partition(".")
        return int(account), number

    def _sign(self, text: str) -> str:
        found = hmac.new(self._key, f"known browser {text}".encode(), "sha256").digest()
        return base64.urlsafe_b64encode(found).decode().rstrip("=")


def _name(request: Request, kind: str) -> str:
    """Return the full name: cookies do not tell ports apart, and a machine may have several controls.

    Only a page over HTTPS can set a cookie with the prefix, and for no other host.
    """
    prefix, usual = ("__Host-", 443) if is_https(request) else ("", 80)
    return f"{prefix}{kind}-{host_of(request)[1] or usual}"


def _read(request: Request, kind: str) -> str:
    name = _name(request, kind)
    pairs = [pair.strip().partition("=") for line in request.headers.getlist("cookie") for pair in line.split(";")]
    found = [value for key, _, value in pairs if key == name]
    # Several of one name: somebody else set one, for another path.
    return found[0] if len(found) == 1 else ""


def _set(request: Request, response: Response, kind: str, value: str, seconds: int) -> None:
    response.set_cookie(
        _name(request, kind),
        value,
        max_age=seconds,
        path="/",
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )
