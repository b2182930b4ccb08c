"""Which web pages may use a server through the browsers of those who look at them, by the `Origin` that browsers send.

Pages of anywhere can make a visitor's browser open a WebSocket to whatever that browser reaches, and no page can choose
its `Origin`. Programs can, so this keeps out pages only (docs/adr/0015-gateway-origins.md).
"""

import ipaddress
import re
from urllib.parse import urlsplit

ANY = "*"
LOCAL = "local"
"""Pages of the browser's own machine, and files where the server is on it too."""
OPAQUE = "null"
"""What browsers say for files; also for frames in a sandbox, which any page can have."""

_PAGE = re.compile(r"https?://[a-z0-9._-]+(?::\d{1,5})?|https?://\[[0-9a-f:.]+\](?::\d{1,5})?")
_USUAL_PORT = re.compile(r"^(http://.*):80$|^(https://.*):443$")


class Origins:
    """The pages of a list, besides the server's own.

    Args:
        listed: Origins, `local`, `null` or `*`, separated by commas.

    Raises:
        ValueError: Something in it is none of these.
    """

    def __init__(self, listed: str) -> None:
        words = [word.strip().lower() for word in listed.split(",") if word.strip()]
        for word in words:
            if word not in (ANY, LOCAL, OPAQUE) and not _PAGE.fullmatch(word):
                raise ValueError(f"{word!r} is not http(s)://host[:port], `local`, `null` or `*`")
        self._listed = frozenset(_USUAL_PORT.sub(r"\1\2", word) for word in words)

    def admits(self, origin: str, host: str) -> bool:
        """Whether a page may come in.

        Ports do not count: proxies lose them, and what runs on another port of a host is the host's own.

        Args:
            origin: What its browser says of it.
            host: How the browser named this server, with or without a port.
        """
        origin = origin.strip().lower()
        if ANY in self._listed or origin in self._listed:
            return True
        if origin == OPAQUE:
            return LOCAL in self._listed and _is_local(_name(host))
        scheme, _, place = origin.partition("://")
        if scheme not in ("http", "https"):
            return True  # no page of the web: libraries and apps say `file://`, extensions have schemes of their own
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
