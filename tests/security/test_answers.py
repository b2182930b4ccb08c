"""Servers that answer a client of ours with far too much: our memory hardly rises, and the client gives up."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from fleet.adapters import http_bounds
from fleet.adapters.llm.llm_openai import OpenAiLlm
from fleet.adapters.llm.vision import OpenAiVision
from fleet.adapters.net.mqtt.emqx import Emqx
from fleet.adapters.speech.asr_openai import OpenAiAsr
from fleet.adapters.speech.tts_openai import OpenAiTts
from fleet.adapters.tools.json_source import JsonSource
from fleet.adapters.tools.mcp_config import Address
from fleet.adapters.tools.mcp_http import open_address
from fleet.core.ports import Message
from fleet.ground.errors import FleetError
from fleet.wire.identity import CredentialKeys
from tests.support.endless_server import BODIES, endless_server

LIMIT = 30.0
"""Seconds until a client has to have given up."""
LARGEST_RISE = 8
"""MB; the connection's own buffers are among them."""

Ask = Callable[[str], Awaitable[None]]


async def ask_llm(url: str) -> None:
    llm = OpenAiLlm(f"{url}/v1", None, "m", timeout=4.0)
    try:
        async for _ in llm.stream([Message("user", "hello")], []):
            pass
    finally:
        await llm.aclose()


async def ask_vision(url: str) -> None:
    vision = OpenAiVision(f"{url}/v1", None, "m", timeout=4.0)
    try:
        await vision.explain(b"jpeg", "what is it")
    finally:
        await vision.aclose()


async def ask_models(url: str) -> None:
    vision = OpenAiVision(f"{url}/v1", None, None, timeout=4.0)
    try:
        await vision.explain(b"jpeg", "what is it")
    finally:
        await vision.aclose()


async def ask_asr(url: str) -> None:
    asr = OpenAiAsr(f"{url}/v1", None, "m", None, 16_000, timeout=4.0)
    try:
        await asr.transcribe(bytes(32_000))
    finally:
        await asr.aclose()


async def ask_tts(url: str) -> None:
    tts = OpenAiTts(f"{url}/v1", None, "m", "v", None, 24_000, timeout=4.0)
    try:
        async for _ in tts.speak("Hello.", "en"):
            pass
    finally:
        await tts.aclose()


async def ask_weather(url: str) -> None:
    source = JsonSource(4.0)
    try:
        await source.ask("weather", url)
    finally:
        await source.aclose()


async def ask_emqx(url: str) -> None:
    await asyncio.wait_for(_expel(url), 4.0)


async def _expel(url: str) -> None:
    emqx = Emqx(url, "key:secret", CredentialKeys("k1:a-key-of-these-tests"))
    async with http_bounds.bounded_client(http_bounds.LARGEST_ERROR, trust_env=False, timeout=4.0) as client:
        await emqx._kick(client, ["02:00:00:00:00:01"])


async def ask_mcp(url: str) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with suppress(BaseExceptionGroup):  # the library's
        async with asyncio.timeout(4.0), open_address(Address(url=url)) as (read, write):
            await write.send(SessionMessage(JSONRPCRequest.model_validate(request)))
            await read.receive()
    raise TimeoutError


CLIENTS: dict[str, Ask] = {
    "llm": ask_llm,
    "vision": ask_vision,
    "models": ask_models,
    "asr": ask_asr,
    "tts": ask_tts,
    "weather": ask_weather,
    "emqx": ask_emqx,
    "mcp": ask_mcp,
}


class Memory:
    """Resident memory of this process."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak
        self._before = self._read("VmRSS:")

    @property
    def rise(self) -> int:
        """By how much it was larger at its peak, in MB."""
        return (self._read("VmHWM:") - self._before) // 1024

    def _read(self, name: str) -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1])


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_bounds, "ERROR_SECONDS", 0.5, raising=False)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("status", [500, 404, 307])
async def test_an_error_of_200_megabytes_is_not_kept(status: int, body: str, client: str) -> None:
    with endless_server(status, body) as server:
        memory = Memory()
        async with asyncio.timeout(LIMIT):
            with pytest.raises((FleetError, TimeoutError)):
                await CLIENTS[client](server.url)
        assert memory.rise < LARGEST_RISE


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "audio/wav"])
@pytest.mark.parametrize("body", BODIES)
async def test_a_success_of_200_megabytes_is_not_kept(body: str, kind: str, client: str) -> None:
    with endless_server(200, body, kind) as server:
        memory = Memory()
        async with asyncio.timeout(LIMIT):
            with suppress(FleetError, TimeoutError):
                await CLIENTS[client](server.url)
        assert memory.rise < LARGEST_RISE
