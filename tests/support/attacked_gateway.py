"""A gateway under attack: real sockets to it, what it counts, and whether it still serves others."""

import asyncio
import base64
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.frames import Frame, Opcode

from fleet.adapters.files.operator_tokens import GATEWAY_CONNECT, OperatorTokens
from fleet.roles.gateway.port.connection_limits import ClientLimits
from fleet.roles.gateway.port.limited_connection import LimitedConnection
from tests.support.descriptors import Descriptors
from tests.support.gateway_stage import Client, ScriptedModel, Stage, gateway_stage, says

LIMIT = 240
ELSEWHERE = ("127.0.0.2", 0)
"""Where those come from whom nobody attacks."""
_POOL = 8
"""Connections to Redis that the store may keep."""

Raw = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def head(path: str = "/", **headers: str) -> bytes:
    """Return the request of a client that opens a WebSocket."""
    lines = {
        "Host": "127.0.0.1",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return "\r\n".join(
        [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()), "", ""]
    ).encode()


def frame(opcode: Opcode, data: bytes = b"", *, final: bool = True) -> bytes:
    """Return a frame of a client."""
    return Frame(opcode, data, final).serialize(mask=True)


@dataclass
class AttackedGateway:
    stage: Stage
    headers: dict[str, str] = field(default_factory=dict)
    """Of normal clients."""
    late: int = 0
    """Normal clients that were put out: where limits are short, a busy machine may pass them."""

    @property
    def counts(self) -> Counter[str]:
        """Who was turned away or ended, by reason."""
        return self.stage.gateway.connection_limits.counts

    @property
    def clients(self) -> list[LimitedConnection]:
        return list(self.stage.gateway._connections)

    async def serves(self) -> None:
        """Fail unless a normal client at another address is answered."""
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    async with self._client() as client:
                        assert (await client.say("hi"))["content"] == "A."
                    return
                except (ConnectionClosed, InvalidMessage, ConnectionError):
                    self.late += 1

    def _client(self) -> AbstractAsyncContextManager[Client]:
        return self.stage.client(local_addr=ELSEWHERE, additional_headers=self.headers)

    async def connect(self, port: int | None = None) -> Raw:
        async with asyncio.timeout(LIMIT):
            return await asyncio.open_connection("127.0.0.1", port or self.stage.gateway.port)

    async def open(self, **headers: str) -> Raw:
        """Open a WebSocket and take the greeting, without a library that would answer pings."""
        reader, writer = await self.connect()
        writer.write(head(**headers))
        async with asyncio.timeout(LIMIT):
            assert b" 101 " in await reader.readline()
            await reader.readuntil(b'"connected"')
        return reader, writer

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT):
            while not condition():
                await asyncio.sleep(0.01)

    async def counted(self, reason: str, times: int = 1) -> None:
        await self.until(lambda: self.counts[reason] >= times)
        assert self.counts[reason] <= times + self.late


@asynccontextmanager
async def attacked_gateway(
    redis_url: str, limits: ClientLimits | None = None, **settings: Any
) -> AsyncIterator[AttackedGateway]:
    """Run a gateway; after the block it must still serve, and hold no more descriptors and connections than before."""
    async with gateway_stage(redis_url, ScriptedModel(says("A.")), limits=limits, **settings) as stage:
        site = AttackedGateway(stage)
        if settings.get("gateway_tokens"):
            token = OperatorTokens(settings["operator_tokens_file"]).add("normal", frozenset({GATEWAY_CONNECT}))
            site.headers["Authorization"] = f"Bearer {token}"
        await site.serves()
        here = Descriptors()
        yield site
        await site.serves()
        await here.no_more(spare=_POOL)
        await site.until(lambda: not site.clients and not stage.gateway.connection_limits.passing)
