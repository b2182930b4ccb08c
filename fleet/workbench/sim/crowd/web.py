"""What devices of a crowd fetch over HTTP: bootstrap, images, notifications. No HTTP client: those cost too much."""

import asyncio
import json
from collections.abc import Callable
from typing import Final

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.audio.ogg import OggError, OggReader
from fleet.workbench.sim.audio.toc import duration_ms
from fleet.workbench.sim.bootstrap import raw_request
from fleet.workbench.sim.crowd.ledger import Ledger
from fleet.workbench.sim.crowd.member import Member
from fleet.workbench.sim.crowd.place import Place, source_of
from fleet.workbench.sim.messages.message import JsonObject
from fleet.workbench.sim.profiles.profile import Profile

AHEAD_SECONDS: Final = 1.2
"""Of a notification's sound, that a device has decoded before it is heard: it closes the connection so much earlier."""


class Web:
    """Requests of devices to one server.

    Args:
        place: Of its bootstrap.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def source(self, number: int) -> str:
        """Return the address from which a device comes; empty: any, as the server is on another machine."""
        return source_of(number) if self._place.is_loopback else ""

    async def bootstrap(self, number: int, mac: str, profile: Profile) -> JsonObject | None:
        """Return what bootstrap answers; None if that is nothing usable."""
        place = self._place
        content = raw_request.request(mac, profile, f"{place.host}:{place.port}", place.path)
        due = asyncio.get_running_loop().time()
        found = await raw_request.ask(place.host, place.port, content, due, self.source(number))
        try:
            answer = json.loads(found.body) if found.status == "200" else None
        except ValueError:
            answer = None
        return answer if isinstance(answer, dict) else None

    async def fetch(self, number: int, mac: str, url: str) -> bytes:
        """Return a file; nothing if it does not come, or not whole."""
        try:
            place = Place.of(url)
        except (ConfigError, ValueError):
            return b""
        content = raw_request.download(place.path, f"{place.host}:{place.port}", mac)
        due, source = asyncio.get_running_loop().time(), source_of(number) if place.is_loopback else ""
        found = await raw_request.ask(place.host, place.port, content, due, source)
        return found.body if found.status == "200" else b""

    async def notify(self, device: Member, url: str, ledger: Ledger) -> None:
        """Play a notification, unless the device plays one: firmware ignores a second one."""
        if device.busy:
            return
        device.busy = True
        try:
            if await self.play(device.number, url, device.mac, ledger.fetch):
                ledger.notices.setdefault(device.mac, []).append(url)
        finally:
            device.busy = False

    async def play(self, number: int, url: str, mac: str, fetched: Callable[[], None] = lambda: None) -> bool:
        """Fetch a notification and hold the connection as long as a device does that plays it; return whether it did.

        A device reads as fast as it plays, and closes the connection when it has read all. `fetched` is called when the
        file has come.
        """
        try:
            place = Place.of(url)
        except (ConfigError, ValueError):
            return False
        local = (source_of(number), 0) if place.is_loopback else None
        try:
            async with asyncio.timeout(raw_request.PATIENCE):
                reader, writer = await asyncio.open_connection(place.host, place.port, local_addr=local)
        except OSError:
            return False
        try:
            writer.write(raw_request.download(place.path, f"{place.host}:{place.port}", mac))
            async with asyncio.timeout(raw_request.PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                content = await reader.readexactly(_length(head))
            fetched()
            await asyncio.sleep(max(0.0, _seconds(content) - AHEAD_SECONDS))
        except (OSError, EOFError, OggError, ValueError, asyncio.LimitOverrunError):
            return False
        else:
            return True
        finally:
            writer.close()


def _seconds(content: bytes) -> float:
    """Return how long a file sounds.

    Raises:
        OggError: Firmware cannot play it.
    """
    reader = OggReader()
    packets = reader.feed(content)
    reader.finish()
    return sum(map(duration_ms, packets)) / 1000


def _length(head: bytes) -> int:
    """Return the length that the head of an answer names.

    Raises:
        ValueError: It names none, or the answer is no success.
    """
    lines = head.decode("latin-1").split("\r\n")
    if lines[0][9:12] != "200":
        raise ValueError(lines[0])
    named = [line.partition(":")[2] for line in lines if line.startswith("Content-Length:")]
    return int(named[0]) if named else -1
