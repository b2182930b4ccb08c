"""Check the audio path: do datagrams reach the edge at the address in the hello, and do its answers return?

An echo request under the session's key (`fleet.wire.echo`) and its answer take the same path as audio packets.
"""

import asyncio
import ipaddress
import secrets
import socket

from fleet.core.finding import Finding, Findings, ok, problem
from fleet.ground.settings.tls import LOOPBACK
from fleet.operations.doctor.hello_answer import HelloAnswer
from fleet.operations.doctor.site import SiteUnderTest
from fleet.wire import echo

TRIES = 4
TRY_SECONDS = 0.6

_ADDRESS_ADVICE = (
    "Set FLEET_UDP_PUBLIC of the edge (in `fleet up` also FLEET_PUBLIC_HOST) to the host:port at which devices reach "
    "the edge; it must lead to its FLEET_UDP_PORT"
)
_BLOCKED_ADVICE = (
    "Open the port for UDP in both directions in the firewall, in the cloud's security group and in the router's port "
    "forwarding; with containers, publish it as /udp. The port must lead to one edge only. Check that FLEET_UDP_PUBLIC "
    "is this server's address. If this machine cannot reach its own public address, run `fleet doctor --ota URL` in "
    "the network of the devices"
)


async def reach(site: SiteUnderTest, hello_answer: HelloAnswer) -> Findings:
    """Check the address, then send echo requests to it."""
    place = f"{hello_answer.host}:{hello_answer.port}"
    address = await _look_up(hello_answer.host)
    if address is None:
        message = f"devices send audio to {place}, which is not an IPv4 address and not a known name"
        yield problem("audio.address", message, _ADDRESS_ADVICE)
        return
    if fault := _find_fault(address, await _broker_address(site)):
        yield problem("audio.address", f"devices send audio to {place}: {fault}", _ADDRESS_ADVICE)
    answered = await ask(address, hello_answer.port, hello_answer)
    if answered is None:
        message = f"devices send audio to {place}, where no process listens"
        yield problem("audio.address", message, _ADDRESS_ADVICE)
    elif answered:
        yield ok("audio.reach", f"audio reaches {place}, and its answer returns")
    else:
        yield await _no_answer(site, hello_answer, place, address)


async def ask(address: str, port: int, hello_answer: HelloAnswer) -> bool | None:
    """Return whether an edge answers under the session's key; None if the machine there reports a closed port."""
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


async def _no_answer(site: SiteUnderTest, hello_answer: HelloAnswer, place: str, address: str) -> Finding:
    message = f"audio to {place} does not arrive, or its answer does not return"
    local = (LOOPBACK, site.settings.udp_port)
    if local not in ((address, hello_answer.port), (LOOPBACK, 0)) and await ask(*local, hello_answer):
        message += f"; the edge itself answers at {LOOPBACK}:{site.settings.udp_port} of this machine"
    return problem("audio.reach", message, _BLOCKED_ADVICE)


async def _look_up(host: str) -> str | None:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_DGRAM)
    except OSError:
        return None
    return str(found[0][4][0]) if found else None


async def _broker_address(site: SiteUnderTest) -> str | None:
    """Return the address of the broker to which bootstrap sends devices."""
    endpoint = (await site.bootstrapped()).endpoint
    return await _look_up(endpoint[0]) if endpoint else None


def _find_fault(address: str, broker: str | None) -> str:
    """Return why devices that reach the broker cannot reach this address; empty if they may."""
    audio = ipaddress.ip_address(address)
    if audio.is_unspecified:
        return "not an address to which anything can be sent"
    if broker is None:
        return ""
    other = ipaddress.ip_address(broker)
    if audio.is_loopback and not other.is_loopback:
        return "a loopback address, by which a device reaches only itself"
    return "a private address, although the broker's is public" if audio.is_private and other.is_global else ""
