"""The heartbeat of the WebSocket protocol (sections 8.1, 11.1, 12.1)."""

import asyncio
import base64
from collections.abc import Iterator
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.gateway_client import LIMIT, gateway_client
from tests.support.gateway_process import GatewayProcess, gateway_process
from tests.support.ports import LOOPBACK
from tests.support.scripted_llm import ScriptedLlm

PING = 0x89


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


@pytest.fixture(scope="module")
def pinging(tmp_path_factory: pytest.TempPathFactory, llm: ScriptedLlm) -> Iterator[GatewayProcess]:
    """A gateway whose heartbeat is fast."""
    heartbeat = {"CLOUD_PING_INTERVAL": "3", "CLOUD_PING_TIMEOUT": "3"}
    with gateway_process(tmp_path_factory.mktemp("pinging"), LLM_BASE_URL=llm.url, **heartbeat) as process:
        yield process


@pytest.mark.requirement("GW-020", "GW-021")
async def test_who_does_not_answer_the_heartbeat_is_disconnected_and_who_answers_stays(pinging: GatewayProcess) -> None:
    # On a busy machine answers may be late, too: then it is tried again.
    async with asyncio.timeout(LIMIT):
        while not await outlives_a_silent_client(pinging):
            pass


async def outlives_a_silent_client(pinging: GatewayProcess) -> bool:
    """Return whether a client that answers is still connected when one that does not is disconnected."""
    async with gateway_client(pinging.url) as client:
        reader, writer = await open_silent(pinging.port)
        seen = []
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                seen.append((await next_frame(reader))[0])
        writer.close()
        assert PING in seen
        try:
            await client.send("ping")
            return (await client.next())["type"] == "pong"
        except ConnectionClosed:
            return False
