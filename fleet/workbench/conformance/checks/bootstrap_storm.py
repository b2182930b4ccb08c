"""Group O, continued: a whole site that boots at once."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from fleet.workbench.conformance.checks.bootstrap import GROUP
from fleet.workbench.conformance.context import CheckContext, fresh_mac
from fleet.workbench.conformance.verdict import NotApplicable, require, span
from fleet.workbench.sim.profiles.identity import Identity, headers, system_info

_A_SECOND = 500
_SECONDS = 4
_LATEST = 5.0
_PATIENCE = 30.0
_OPEN_AT_ONCE = 800
"""Connections; a process may seldom open more than a thousand files."""


@dataclass(slots=True)
class _Storm:
    host: str
    port: int
    times: list[float]
    statuses: Counter[str]


@GROUP.check(
    "O12", "500 bootstraps a second are answered, the slowest within 5 s", profiles="P1", alone=True, seconds=120
)
async def takes_a_storm(context: CheckContext) -> str:
    parts = urlsplit(context.setup.ota_url)
    if parts.scheme != "http":
        raise NotApplicable("over https this would measure the suite's own TLS")
    devices = _Storm(parts.hostname or "", parts.port or 80, [], Counter())
    slots, loop = asyncio.Semaphore(_OPEN_AT_ONCE), asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        for number, identity in enumerate(_identities()):
            request = _request(context, identity, parts.path, parts.netloc)
            await asyncio.sleep(max(0.0, begun + number / _A_SECOND - loop.time()))
            group.create_task(_ask(devices, slots, request, loop.time()), name=f"device {number}")
    took = sorted(devices.times)
    require(set(devices.statuses) == {"200"}, f"answers: {dict(devices.statuses)}")
    p99 = took[round(0.99 * (len(took) - 1))]
    require(p99 < _LATEST, f"the slowest of a hundred after {span(p99)}")
    rate = len(took) / (loop.time() - begun)
    return (
        f"{len(took)} answers, {rate:.0f} a second; half within {span(took[len(took) // 2])}, 99 % within {span(p99)}"
    )


async def _ask(devices: _Storm, slots: asyncio.Semaphore, request: bytes, begun: float) -> None:
    """Send a request on a connection of its own and wait for the end of the answer."""
    async with slots:
        status = "no answer"
        try:
            async with asyncio.timeout(_PATIENCE):
                reader, writer = await asyncio.open_connection(devices.host, devices.port)
                writer.write(request)
                answer = await reader.read()
                writer.close()
            status = answer[9:12].decode("ascii", "replace") or "no answer"
        except (OSError, TimeoutError) as error:
            status = type(error).__name__
        devices.statuses[status] += 1
        devices.times.append(asyncio.get_running_loop().time() - begun)


@cache
def _identities() -> list[Identity]:
    """Return the devices, the same in every round: a server keeps a place for each device that never connected."""
    return [Identity.of(fresh_mac()) for _ in range(_A_SECOND * _SECONDS)]


def _request(context: CheckContext, identity: Identity, path: str, host: str) -> bytes:
    body = system_info(identity, context.profile).encode()
    sent = {"Host": host, **headers(identity, context.profile), "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body
