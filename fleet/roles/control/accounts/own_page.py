"""Whether a request comes from a page of control itself, over a connection that nobody reads.

A browser adds a cookie to requests of every page of the same site, which is more than control's own pages: those of
other ports of this machine, too. So what a cookie allows also needs these checks.
"""

import ipaddress

from fastapi import Request

from fleet.roles.control.problems import Problem

_DIGITS = 6


def check_privacy(request: Request) -> None:
    """Check that passwords and cookies may travel with a request.

    Raises:
        Problem: It came over plain HTTP, and not from this machine to a name of this machine (403).
    """
    if not is_https(request) and not _stays_here(request):
        detail = "accounts work over HTTPS, or on the machine of control at http://127.0.0.1 or http://localhost"
        raise Problem(403, "https-needed", detail, headers={"Connection": "close"})


def check_page(request: Request, *, changes: bool) -> None:
    """Check that no foreign page sent a request that a cookie allows.

    Args:
        request: The request.
        changes: Whether it changes something; it must then name control as its origin, as every browser does.

    Raises:
        Problem: It did (403).
    """
    headers = request.headers
    place = headers.get("sec-fetch-site", "same-origin")
    # "none": the user opened the address directly, such as that of an export.
    is_own = place == "same-origin" or (place == "none" and not changes)
    origins = headers.getlist("origin")
    if is_own and (origins == [own_origin(request)] or not (origins or changes)):
        return
    raise Problem(
        403, "foreign-page", "only pages of control itself may use its cookies", headers={"Connection": "close"}
    )


def refuse_foreign_page(request: Request) -> None:
    """Check that no foreign page sent a request that sets a cookie; programs name no page.

    Raises:
        Problem: One did (403).
    """
    check_page(request, changes=bool(request.headers.getlist("origin")))


def is_https(request: Request) -> bool:
    """Return whether a client's connection is encrypted; a trusted proxy may have said so."""
    return request.url.scheme == "https"


def is_local(request: Request) -> bool:
    """Return whether a client is on this machine."""
    return _is_loopback(request.client.host if request.client else "")


def own_origin(request: Request) -> str:
    """Return the origin of control's pages, as this client reaches them."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}".lower()


def host_of(request: Request) -> tuple[str, int]:
    """Return name and port by which a client reaches control; port 0 if it names none."""
    name, colon, port = request.headers.get("host", "").lower().rpartition(":")
    if not colon or "]" in port:
        return f"{name}{colon}{port}", 0
    return name, int(port) if port.isascii() and port.isdigit() and len(port) < _DIGITS else 0


def _stays_here(request: Request) -> bool:
    # The name counts, too: one that resolves to this machine belongs to whoever owns that name.
    name = host_of(request)[0]
    return is_local(request) and (name == "localhost" or _is_loopback(name))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
