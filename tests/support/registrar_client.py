"""A WebSocket client that speaks the registrar dialect, and a gateway in this process for it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.agent_settings import OneModel
from fleet.core.ports import Llm
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.gateway.app import Gateway
from fleet.roles.gateway.registrar.registrar import OpenDevice, open_registrar
from fleet.roles.gateway.resources import GatewayResources, ModelTerms
from fleet.roles.gateway.settings import GatewaySettings
from tests.support.gateway_stage import UNHURRIED, OwnTools, patient_limits

PATIENCE = 240.0

Frame = dict[str, Any]


class RegistrarClient:
    """One connection; the API's frames, which a registrar does not know, are skipped."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    async def send(self, frame: Frame | str) -> None:
        await self.socket.send(frame if isinstance(frame, str) else json.dumps({"jsonrpc": "2.0", **frame}))

    async def hear(self) -> Frame:
        while "jsonrpc" not in (frame := await self.hear_any()):
            pass
        return frame

    async def hear_any(self) -> Frame:
        async with asyncio.timeout(PATIENCE):
            frame: Frame = json.loads(await self.socket.recv())
        return frame

    async def register(self, *tools: Frame, number: Any = "r1", **params: Any) -> Frame:
        named = {"tools": list(tools), **params}
        await self.send({"method": "mcp/registerTools", "params": named, "id": number})
        return await self.hear()

    async def type(self, text: str) -> None:
        await self.socket.send(json.dumps({"type": "text_input", "text": text}))

    async def hear_call(self) -> Frame:
        frame = await self.hear()
        assert frame["method"] == "mcp/tool/execute", frame
        return frame

    async def hear_messages(self) -> list[tuple[str, str]]:
        """Return type and content of what the model says until its end."""
        said: list[tuple[str, str]] = []
        while not said or said[-1][0] != "final":
            params = (await self.hear())["params"]
            said.append((params["type"], params["content"]))
        return said


@asynccontextmanager
async def registrar_gateway(
    store: Store, llm: Llm, open_line: OpenDevice | None = None, **settings: Any
) -> AsyncIterator[str]:
    """Run a gateway beside the block; give its address."""
    chosen = Settings(cloud_host="127.0.0.1", cloud_port=0, client_tool_timeout=PATIENCE, **settings)
    sessions = GatewaySessions(store, chosen.cloud_session_timeout)
    resources = GatewayResources(
        slice_of(chosen, GatewaySettings),
        OneModel(llm),
        ModelTerms(0.7, 2048),
        OwnTools(),
        sessions,
        KnownAgents(store),
    )
    gateway = Gateway(resources, store.ping_writes, open_registrar(resources, open_line), limits=patient_limits())
    async with running("gateway", gateway.run):
        await gateway.started.wait()
        yield f"ws://127.0.0.1:{gateway.port}"


@asynccontextmanager
async def registrar_client(url: str) -> AsyncIterator[RegistrarClient]:
    async with connect(url, proxy=None, **UNHURRIED) as socket:
        yield RegistrarClient(socket)
