"""The audio path: do datagrams reach the edge at the address in its hello, and do its answers come back?

An echo request under the session's key (`fleet.wire.echo`) takes the path of audio packets, and so does its answer.
"""

import asyncio
import ipaddress
import secrets
import socket

from fleet.ground.settings.tls import LOOPBACK
from fleet.operations.doctor.finding import Finding, Findings, ok, problem
from fleet.operations.doctor.hello_answer import HelloAnswer
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire import echo

TRIES = 4
TRY_SECONDS = 0.6

_PLACE = (
    "FLEET_UDP_PUBLIC of the edge (in `fleet up` also FLEET_PUBLIC_HOST) must be host:port by which devices "
    "reach it, and "
    "lead to its FLEET_UDP_PORT"
)
_BLOCKED = (
    "Open the port for UDP, in both directions, in the firewall, the cloud's security group and the router's port "
    "forwarding; with containers publish it as /udp. It must lead to one edge only. Else FLEET_UDP_PUBLIC "
    "names somebody "
    "else's address; and if this machine cannot reach its own public address, run `fleet doctor --ota URL` "
    "where devices are"
)


async def reach(site: SiteUnderTest, hello_answer: HelloAnswer) -> Findings:
    """Check the address, then send the edge an echo request there."""
    place = f"{hello_answer.host}:{hello_answer.port}"
    address = await _look_up(hello_answer.host)
    if address is None:
        yield problem("audio.address", f"audio is sent to {place}, which is no IPv4 address and no known name", _PLACE)
        return
    if fault := _implausible(address, await _sent_to(site)):
        yield problem("audio.address", f"audio is sent to {place}: {fault}", _PLACE)
    heard = await ask(address, hello_answer.port, hello_answer)
    if heard is None:
        yield problem("audio.address", f"audio is sent to {place}, where nobody listens", _PLACE)
    elif heard:
        yield ok("audio.reach", f"audio gets through to {place} and back")
    else:
        yield await _silent(site, hello_answer, place, address)


async def ask(address: str, port: int, hello_answer: HelloAnswer) -> bool | None:
    """Return whether an edge answers under the session's key; None when the machine there says that nobody listens."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.setblocking(False)
        try:
            own.connect((address, port))
            for number in range(1, TRIES + 1):
                if await _try(own, hello_answer, number):
                    return True
        except ConnectionRefusedError:
            return None
        except OSError:
            return False
    return False


async def _try(own: socket.socket, hello_answer: HelloAnswer, number: int) -> bool:
    loop, token = asyncio.get_running_loop(), secrets.token_bytes(echo.TOKEN)
    await loop.sock_sendall(own, echo.ask(hello_answer.key, hello_answer.ssrc, number, token))
    try:
        async with asyncio.timeout(TRY_SECONDS):
            while echo.read(hello_answer.key, await loop.sock_recv(own, 2048)) != token:
                pass
    except TimeoutError:
        return False
    return True


async def _silent(site: SiteUnderTest, hello_answer: HelloAnswer, place: str, address: str) -> Finding:
    message = f"audio that is sent to {place} does not arrive, or its answer does not"
    near = (LOOPBACK, site.settings.udp_port)
    if near not in ((address, hello_answer.port), (LOOPBACK, 0)) and await ask(*near, hello_answer):
        message += f"; the edge itself hears, at {LOOPBACK}:{site.settings.udp_port} of this machine"
    return problem("audio.reach", message, _BLOCKED)


async def _look_up(host: str) -> str | None:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    return str(found[0][4][0]) if found else None


async def _sent_to(site: SiteUnderTest) -> str | None:
    """Return the address of the broker that devices are sent to."""
    endpoint = (await site.bootstrapped()).endpoint
    return await _look_up(endpoint[0]) if endpoint else None


def _implausible(address: str, broker: str | None) -> str:
    """Return why devices that reach the broker cannot reach the audio; empty when they may."""
    audio = ipaddress.ip_address(address)
    if audio.is_unspecified:
        return "no address at all"
    if broker is None:
        return ""
    other = ipaddress.ip_address(broker)
    if audio.is_loopback and not other.is_loopback:
        return "each device's own address"
    return "a private address, while the broker's is public" if audio.is_private and other.is_global else ""
