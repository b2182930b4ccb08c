"""How a scripted device boots."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from fleet.workbench.sim.profiles.profile import find_profile
from fleet.workbench.sim.scripted.connected_device import ConnectedDevice, Origin

MAC = "02:00:00:00:00:01"
SECTION = {
    "endpoint": "127.0.0.1",
    "client_id": "c",
    "username": "u",
    "password": "p",
    "publish_topic": "up",
    "subscribe_topic": "down",
}


async def boot(statuses: Iterator[int]) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
        body = json.dumps({"mqtt": SECTION}).encode()
        writer.write(b"HTTP/1.1 %d S\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (next(statuses), len(body)))
        writer.write(body)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        device = ConnectedDevice(find_profile("P1"), MAC, Origin(f"http://127.0.0.1:{port}/ota/"))
        async with asyncio.timeout(240):
            await device.boot()


async def test_bootstrap_that_is_busy_is_asked_once_more() -> None:
    await boot(iter([503, 200]))


@pytest.mark.parametrize("statuses", [(503, 503), (403, 200), (500, 200)])
async def test_any_other_refusal_counts(statuses: tuple[int, int]) -> None:
    with pytest.raises(Exception, match=f"status {statuses[0]}"):
        await boot(iter(statuses))
