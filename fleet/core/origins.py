"""Which web pages may connect to a server, by the `Origin` header that browsers send.

Any web page can make a browser open a WebSocket to any server that the browser reaches, and no page can choose its
`Origin`. Programs can, so this check refuses pages only (docs/adr/0015-gateway-origins.md).
"""

import ipaddress
import re
from urllib.parse import urlsplit

ANY = "*"
LOCAL = "local"
"""Pages of the browser's own machine, and local files if the server runs on that machine too."""
OPAQUE = "null"
"""Browsers send this for local files, and for sandboxed frames, which any page can contain."""

_PAGE = re.compile(r"https?://[a-z0-9._-]+(?::\d{1,5})?|https?://\[[0-9a-f:.]+\](?::\d{1,5})?")
_USUAL_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")


class Origins:
    """The pages of a list, besides the server's own.

    Args:
        listed: Origins, `local`, `null` or `*`, separated by commas.

    Raises:
        ValueError: An entry has none of these forms.
    """

    def __init__(self, listed: str) -> None:
        words = [word.strip().lower() for word in listed.split(",") if word.strip()]
        for word in words:
            if word not in (ANY, LOCAL, OPAQUE) and not _PAGE.fullmatch(word):
                raise ValueError(f"{word!r} is not http(s)://host[:port], `local`, `null` or `*`")
        self._listed = frozenset(_USUAL_PORT.sub(r"\1\2", word) for word in words)

    def admits(self, origin: str, host: str) -> bool:
        """Whether a page may connect.

        Ports are ignored: proxies lose them, and a service on another port of a host belongs to the same host.

        Args:
            origin: The `Origin` header.
            host: The `Host` header, with or without a port.
        """
        origin = origin.strip().lower()
        if ANY in self._listed or origin in self._listed:
            return True
        if origin == OPAQUE:
            return LOCAL in self._listed and _is_local(_name(host))
        scheme, _, place = origin.partition("://")
        if scheme not in ("http", "https"):
            return True  # not a web page: libraries and apps send `file://`, extensions have schemes of their own
        name = _name(place)
        return bool(name) and (name == _name(host) or (LOCAL in self._listed and _is_local(name)))


def _name(place: str) -> str:
    """Return the host of `host[:port]`, empty if there is none."""
    try:
        return urlsplit(f"//{place.strip()}").hostname or ""
    except ValueError:
        return ""


def _is_local(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
