"""A page talks to an agent: real control, gateway, broker, edge and worker, and a WebSocket as a browser has it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from fleet.adapters.speech.opus import Decoder, Encoder
from fleet.wire.voice_websocket import TAKEN_OVER
from tests.support.gateway_stage import UNHURRIED
from tests.support.openai_server import OpenAiServer
from tests.support.ports import LOOPBACK
from tests.support.recordings import recordings
from tests.support.talk_site import HEARD, SAID, TONE, talk_models, talk_site

pytestmark = pytest.mark.scripted

LIMIT = 240.0
FRAME_MS = 60
HELLO_AUDIO = {"format": "opus", "sample_rate": 16000, "channels": 1, "frame_duration": FRAME_MS}
HELLO = {
    "type": "hello",
    "version": 1,
    "transport": "websocket",
    "features": {"mcp": True},
    "audio_params": HELLO_AUDIO,
}


@pytest.fixture
def models() -> Iterator[OpenAiServer]:
    with talk_models() as server:
        yield server


class Page:
    """What a page does with its WebSocket."""

    def __init__(self, socket: ClientConnection, sound: str = "opus") -> None:
        self.socket, self._sound = socket, sound
        self.texts: list[dict[str, Any]] = []
        self.audio: list[bytes] = []

    async def tell(self, message: dict[str, Any]) -> None:
        await self.socket.send(json.dumps(message))

    async def until(self, kind: str, state: str = "") -> dict[str, Any]:
        """Read until a message of a type, and state, has come."""
        async with asyncio.timeout(LIMIT):
            while True:
                frame = await self.socket.recv()
                if isinstance(frame, bytes):
                    self.audio.append(frame)
                    continue
                message = json.loads(frame)
                self.texts.append(message)
                if message["type"] == kind and message.get("state", "") == state:
                    return message

    async def greet(self) -> dict[str, Any]:
        await self.tell(HELLO | {"audio_params": HELLO_AUDIO | {"format": self._sound}})
        return await self.until("hello")

    @property
    def heard(self) -> bytes:
        """The sound of the answer, 24 kHz."""
        return b"".join(self.audio if self._sound == "pcm" else map(Decoder(24_000).decode, self.audio))

    async def say(self, pcm: bytes) -> None:
        encoder = Encoder(16_000, FRAME_MS)
        whole = pcm + bytes(-len(pcm) % encoder.frame_bytes)
        for at in range(0, len(whole), encoder.frame_bytes):
            frame = whole[at : at + encoder.frame_bytes]
            await self.socket.send(frame if self._sound == "pcm" else encoder.encode(frame))
            # As fast as a microphone: the edge drops what comes faster.
            await asyncio.sleep(FRAME_MS / 1000)


async def ticket(client: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await client.post("talks")
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def socket_of(talk: dict[str, Any]) -> connect:
    offered = [Subprotocol("fleet.gateway"), Subprotocol(f"fleet.ticket.{talk['ticket']}")]
    return connect(f"ws://{LOOPBACK}:{talk['port']}{talk['path']}", subprotocols=offered, proxy=None, **UNHURRIED)


async def test_a_page_talks_and_is_a_device_like_all_others(models: OpenAiServer, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(talk_site(tmp_path, models))
        for sound in ("opus", "pcm"):
            await talk_once(client, sound)


async def talk_once(client: httpx2.AsyncClient, sound: str) -> None:
    talk = await ticket(client)
    async with socket_of(talk) as socket:
        page = Page(socket, sound)
        welcome = await page.greet()
        assert welcome["transport"] == "websocket" and "udp" not in welcome
        assert welcome["audio_params"]["format"] == sound
        assert (await page.until("mcp"))["payload"]["method"] == "initialize"
        session = welcome["session_id"]
        await page.tell({"session_id": session, "type": "listen", "state": "start", "mode": "manual"})
        await page.say(recordings("en")[2].pcm())
        await page.tell({"session_id": session, "type": "listen", "state": "stop"})
        assert (await page.until("stt"))["text"] == HEARD
        await page.until("tts", "stop")
        assert {one.get("text") for one in page.texts if one.get("state") == "sentence_start"} == {SAID}
        assert len(page.heard) >= 0.9 * len(TONE)
        device = (await client.get(f"devices/{talk['device']}")).json()
        assert device["board"] == "browser" and device["online"]
    async with asyncio.timeout(LIMIT):
        while (await client.get(f"devices/{talk['device']}")).json()["online"]:
            await asyncio.sleep(0.2)


async def test_a_ticket_is_valid_once_and_none_but_a_ticket_opens_the_door(
    models: OpenAiServer, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(talk_site(tmp_path, models))
        talk = await ticket(client)
        first = await stack.enter_async_context(socket_of(talk))
        for wrong in (talk, talk | {"ticket": "x" * 43}, talk | {"ticket": ""}):
            with pytest.raises(InvalidStatus) as refused:
                await connect_once(wrong)
            assert refused.value.response.status_code == 401
        await first.send(json.dumps(HELLO | {"version": 2}))
        with pytest.raises(Exception, match="only version 1"):
            await first.recv()
        wide = await stack.enter_async_context(socket_of(await ticket(client)))
        await wide.send(json.dumps(HELLO | {"more": "x" * 70_000}))
        with pytest.raises(Exception, match="too large"):
            await wide.recv()
        flood = Page(await stack.enter_async_context(socket_of(await ticket(client))))
        session = (await flood.greet())["session_id"]
        with pytest.raises(Exception, match="too many messages"):
            # Until it is cut off: a busy machine reads so slowly that a few hundred are not too many.
            for _ in range(20_000):
                await flood.tell({"session_id": session, "type": "abort"})
                # Look for the end, of which the reason is lost to who does not read it in time.
                await asyncio.sleep(0)
            await flood.until("none")
        # A token has one device: its newer page takes the place of the older one.
        older = Page(await stack.enter_async_context(socket_of(await ticket(client))))
        await older.greet()
        newer = Page(await stack.enter_async_context(socket_of(await ticket(client))))
        await newer.greet()
        async with asyncio.timeout(LIMIT):
            await older.socket.wait_closed()
        assert older.socket.close_code == TAKEN_OVER


async def connect_once(talk: dict[str, Any]) -> None:
    async with socket_of(talk):
        raise AssertionError("the door is open")


async def test_a_talk_ends_with_its_token(models: OpenAiServer, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(talk_site(tmp_path, models))
        for seconds in (5, 10, 20, 40, 80, 160):  # a slow machine may need longer until it talks
            wanted = {"name": f"page-{seconds}", "scopes": ["devices:command"]}
            expires = datetime.now(UTC) + timedelta(seconds=seconds)
            made = (await client.post("tokens", json=wanted | {"expires": expires.isoformat()})).json()
            answer = await client.post("talks", headers={"Authorization": f"Bearer {made['token']}"})
            if answer.status_code == 401 or not await talks_until_its_end(answer.json()):
                continue
            assert datetime.now(UTC) >= expires
            return
        pytest.fail("no talk began before its token expired")


async def talks_until_its_end(talk: dict[str, Any]) -> bool:
    """Whether a talk began, and ended as its token has expired."""
    async with socket_of(talk) as socket:
        page = Page(socket)
        try:
            session = (await page.greet())["session_id"]
            # Who neither speaks nor listens would be sent away before.
            await page.tell({"session_id": session, "type": "listen", "state": "start", "mode": "auto"})
        except ConnectionClosed:
            return False
        async with asyncio.timeout(LIMIT):
            await socket.wait_closed()
        return "expired" in (socket.close_reason or "")
