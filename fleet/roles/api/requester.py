"""The device that sends a request, by its headers; the body may be damaged, so it only adds to them (contract 1.1)."""

from dataclasses import dataclass

from fastapi import Request

from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.settings import ApiSettings
from fleet.wire import topics
from fleet.wire.activation import version_of
from fleet.wire.bootstrap import clip, endpoint_host, is_firmware, parse_agent
from fleet.wire.firmware import Version
from fleet.wire.locales import read_locale

_LONGEST_SERIAL = 32


@dataclass(frozen=True, slots=True)
class Requester:
    """What a device says of itself. Nothing of it is proved; all but the MAC may be empty."""

    mac: str
    client: str
    """Its Client-Id, which tells devices with the same MAC apart."""
    serial: str
    """Only of devices that have one burnt in."""
    board: str
    running: Version | None
    firmware: str
    language: str
    """A locale such as `zh-CN`."""
    is_firmware: bool = False
    """Whether it asks as xiaozhi firmware does, so that it speaks that dialect."""


def read_requester(request: Request) -> Requester:
    """Return the device that sent a request.

    Raises:
        RefusedRequest: No MAC is in its headers (400).
    """
    headers = _read_headers(request)
    mac = topics.canonical_mac(headers.get("device-id", "")[:64])
    if mac is None:
        raise RefusedRequest("no mac", 400, "the header Device-Id must hold the device's MAC")
    agent = headers.get("user-agent", "")
    board, running = parse_agent(agent)
    serial = headers.get("serial-number", "") if version_of(headers.get("activation-version", "")) == 2 else ""
    return Requester(
        mac=mac,
        client=clip(headers.get("client-id", "")).strip(),
        serial=serial[:_LONGEST_SERIAL],
        board=board,
        running=running,
        firmware=clip(agent.partition("/")[2]),
        language=read_locale(headers.get("accept-language", "").partition(",")[0].partition(";")[0]),
        is_firmware=is_firmware(agent, headers.get("activation-version", "")),
    )


def _read_headers(request: Request) -> dict[str, str]:
    """Return the headers by name; of several with one name the first. Each look into `Request.headers` reads all."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(request.scope["headers"])}


def require_client(who: Requester, settings: ApiSettings) -> None:
    """Check that a request has a Client-Id: a MAC alone is no secret.

    Raises:
        RefusedRequest: It has none, and the policy is not open (400).
    """
    if not who.client and settings.activation != "open":
        raise RefusedRequest(
            "no client id", 400, "the header Client-Id must hold what the device made at its first start"
        )


@dataclass(frozen=True, slots=True)
class RequestedHost:
    """Where the device of a request reaches this server.

    `host` and `url` go into the answer to this request; they may come from its Host header. `stored` is kept for the
    MAC, which anybody can name: it comes from a header only if the MAC is proved.
    """

    host: str
    url: str
    """Of the api, without a slash at its end."""
    stored: str


def requested_host(request: Request, settings: ApiSettings) -> RequestedHost:
    """Return where the device reaches this server.

    Raises:
        RefusedRequest: A device could not use the host of its request, and none is set (400).
    """
    named = request.headers.get("host", "")
    host = settings.public_host or endpoint_host(named)
    if host is None:
        raise RefusedRequest("no host", 400, "set FLEET_PUBLIC_HOST: devices cannot use the host of this URL")
    _, colon, port = named.strip().rpartition(":")
    authority = f"{host}:{port}" if colon and port.isdigit() else host
    local = request.scope.get("server") or ("", 0)
    proved = settings.activation != "open"
    return RequestedHost(
        host=host,
        url=settings.http_public or f"{request.scope['scheme']}://{authority}",
        stored=settings.public_host or (host if proved else str(local[0])),
    )
