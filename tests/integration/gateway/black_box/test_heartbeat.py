"""The heartbeat of the WebSocket protocol (sections 8.1, 11.1, 12.1)."""

import asyncio
import base64

import pytest

from tests.support.gateway_client import LIMIT, gateway_client
from tests.support.gateway_process import GatewayProcess
from tests.support.ports import LOOPBACK

PING, CLOSE = 0x89, 0x88


async def open_silent(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect as a client that never answers anything."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    key = base64.b64encode(b"0123456789abcdef").decode()
    lines = ["GET / HTTP/1.1", f"Host: {LOOPBACK}:{port}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
    writer.write("\r\n".join(lines).encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    return reader, writer


async def next_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first, length = await reader.readexactly(2)
    size = int.from_bytes(await reader.readexactly(2)) if length == 126 else length
    return first, await reader.readexactly(size)


@pytest.mark.requirement("GW-020", "GW-021")
async def test_who_does_not_answer_the_heartbeat_is_disconnected(hasty: GatewayProcess) -> None:
    async with asyncio.timeout(LIMIT):
        reader, writer = await open_silent(hasty.port)
        seen = []
        try:
            while True:
                seen.append((await next_frame(reader))[0])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
    assert PING in seen


@pytest.mark.requirement("GW-020")
async def test_who_answers_the_heartbeat_stays(hasty: GatewayProcess) -> None:
    async with gateway_client(hasty.url) as client, asyncio.timeout(LIMIT):
        reader, writer = await open_silent(hasty.port)
        while await reader.read(4096):
            pass
        writer.close()
        await client.send("ping")
        assert (await client.next())["type"] == "pong"
