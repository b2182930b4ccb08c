"""A gateway in this process, with a scripted model, server tools of the test's own, and clients over real sockets."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import JsonValue
from websockets.asyncio.client import ClientConnection, connect

from fleet.adapters.llm.llm_timed import TimedLlm
from fleet.adapters.net.tls.certificate import followed_certificate
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.gateway_sessions import GatewaySessions
from fleet.core.agent_settings import OneModel
from fleet.core.ports import USUAL, CallsAsked, LlmEvent, LlmOptions, Message, TextDelta, ToolCall, ToolOffer
from fleet.core.server_tools import Caller, Persona, ServerResult
from fleet.core.situation import words_of
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.gateway.app import Gateway, Opener
from fleet.roles.gateway.port.connection_limits import ClientLimits
from fleet.roles.gateway.resources import GatewayResources, ModelTerms
from fleet.roles.gateway.settings import GatewaySettings
from tests.support.patience import GATEWAY, lengthen

PATIENCE = 240.0
UNHURRIED: dict[str, Any] = {"open_timeout": PATIENCE, "ping_interval": None}
"""For clients of websockets, whose own limits a busy machine may pass."""

Frame = dict[str, Any]
Step = LlmEvent | Exception | asyncio.Event


def says(text: str) -> list[Step]:
    return [TextDelta(text)]


def asks(*calls: tuple[str, Any], text: str = "") -> list[Step]:
    """Ask for calls; arguments that are text stay as they are."""
    asked = tuple(
        ToolCall(f"call_{number}", name, given if isinstance(given, str) else json.dumps(given))
        for number, (name, given) in enumerate(calls)
    )
    return [*([TextDelta(text)] if text else []), CallsAsked(asked)]


class ScriptedModel:
    """Says one script after the other; the last one again and again. An event in a script is waited for."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = list(scripts)
        self.asked: list[tuple[tuple[Message, ...], tuple[ToolOffer, ...], LlmOptions]] = []
        self.begun = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions = USUAL
    ) -> AsyncGenerator[LlmEvent, None]:
        self.asked.append((tuple(messages), tuple(tools), options))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        self.begun.set()
        try:
            for step in script:
                if isinstance(step, asyncio.Event):
                    await step.wait()
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
        finally:
            self.closed.set()

    def told(self, request: int = -1) -> list[str]:
        """Return the texts of a request's messages, the system's left out."""
        return [words_of(message.text) for message in self.asked[request][0] if message.role != "system"]


Run = Callable[[dict[str, JsonValue], Caller], ServerResult]


@dataclass
class OwnTools:
    """Server tools that are functions of the test; an event makes a tool wait for it."""

    run: dict[str, Run] = field(default_factory=dict)
    waits: dict[str, asyncio.Event] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, JsonValue], str]] = field(default_factory=list)

    @property
    def offers(self) -> Sequence[ToolOffer]:
        return [ToolOffer(name, f"does {name}", {"type": "object", "properties": {}}) for name in self.run]

    def introduce(self, persona: Persona) -> str:
        return f"Answer in {persona.language!r} as {persona.character!r}." if persona != Persona() else ""

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        self.calls.append((name, arguments, caller.session))
        if name in self.waits:
            await self.waits[name].wait()
        return self.run[name](arguments, caller)


class Client:
    """A client of the API."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.session = ""
        self.heard: list[Frame] = []

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def next(self) -> Frame:
        async with asyncio.timeout(PATIENCE):
            frame: Frame = json.loads(await self.socket.recv())
        self.heard.append(frame)
        return frame

    async def until(self, kind: str) -> Frame:
        """Return the next frame of a type; those before it are in `heard`."""
        while (frame := await self.next())["type"] != kind:
            pass
        return frame

    async def answer(self) -> Frame:
        """Return the `llm_response` or `error` that ends a request; nothing more comes to it."""
        while (frame := await self.next())["type"] not in ("llm_response", "error") or not frame.get("is_final", True):
            pass
        assert frame["type"] == "error" or self.heard[-2].get("status") == "idle"
        return frame

    async def say(self, text: str, **fields: Any) -> Frame:
        await self.send("text_input", text=text, **fields)
        return await self.answer()

    async def register(self, *names: str, **parameters: Any) -> Frame:
        schema = {"type": "object", "properties": parameters}
        tools = [{"name": name, "description": f"does {name}", "parameters": schema} for name in names]
        await self.send("register_tools", tools=tools)
        return await self.until("tools_registered")

    async def silence(self) -> None:
        """Fail if anything was sent: a ping is answered after all that came before."""
        await self.send("ping")
        assert (await self.next())["type"] == "pong"


@dataclass
class Stage:
    """A gateway that runs."""

    gateway: Gateway
    model: ScriptedModel
    tools: OwnTools
    sessions: GatewaySessions

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.gateway.port}"

    @asynccontextmanager
    async def client(self, **options: Any) -> AsyncIterator[Client]:
        """Connect and take the greeting."""
        async with connect(self.url, **UNHURRIED | options) as socket:
            client = Client(socket)
            client.session = (await client.next())["data"]["session_id"]
            yield client


def patient_limits(**changed: Any) -> ClientLimits:
    """Return limits of connections that a busy machine does not pass, but for those that a test is about."""
    times = dict.fromkeys(("tls", "head", "message", "unread"), PATIENCE)
    return ClientLimits(**times | changed)


@asynccontextmanager
async def gateway_stage(
    redis_url: str,
    model: ScriptedModel,
    tools: OwnTools | None = None,
    *,
    seconds: float = PATIENCE,
    registrar: Opener | None = None,
    limits: ClientLimits | None = None,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """Run a gateway beside the block."""
    usual = {"client_tool_timeout": PATIENCE, "tool_seconds": PATIENCE}
    named = {"cloud_host": "127.0.0.1", "cloud_port": 0, "wss_port": 0, **usual, **settings}
    chosen = Settings(_env_file=None, **named)
    store = await Store.open(redis_url, 16)
    sessions = GatewaySessions(store, chosen.cloud_session_timeout)
    tools = tools or OwnTools()
    try:
        resources = GatewayResources(
            slice_of(chosen, GatewaySettings),
            OneModel(TimedLlm(model, seconds)),
            ModelTerms(0.7, 2048),
            tools,
            sessions,
            KnownAgents(store),
        )
        async with followed_certificate(chosen.tls_cert, chosen.tls_key) as shown:
            gateway = Gateway(
                resources, store.ping_writes, registrar, certificate=shown, limits=limits or patient_limits()
            )
            with pytest.MonkeyPatch.context() as patch:
                lengthen(patch, GATEWAY)
                async with running("gateway", gateway.run):
                    await gateway.started.wait()
                    yield Stage(gateway, model, tools, sessions)
    finally:
        await store.close()
