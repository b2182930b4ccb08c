"""The port to tools that run on the server: the built-in ones, and those of MCP servers."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from fleet.core.ports import ProviderOptions, ToolOffer


@dataclass(frozen=True, slots=True)
class Persona:
    """Language and role of the model for one client; kept with its session, or with its device."""

    language: str = ""
    """Code of the language to answer in; empty for the user's own."""
    character: str = ""
    """Name of the role that the model plays; empty for none."""


@dataclass(slots=True)
class Caller:
    """The client for which tools run. A tool may replace `persona`; the turn then stores it."""

    session: str
    address: str = ""
    """The client's IP address, where it is known."""
    timezone_offset: int = 0
    """Minutes east of UTC."""
    persona: Persona = field(default_factory=Persona)


@dataclass(frozen=True, slots=True)
class ServerResult:
    """A tool's result; with `failed`, the reason as text."""

    value: JsonValue
    failed: bool = False


RunTool = Callable[[dict[str, JsonValue], Caller], Awaitable[ServerResult]]
"""Runs a tool with arguments that fit its schema."""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool that runs in this process: a built-in one, or one of a plugin."""

    offer: ToolOffer
    run: RunTool
    repeatable: bool
    """Whether it may run again when its first outcome is unknown: it only reads, or a second run changes nothing."""


class ServerTools(Protocol):
    """The tools that a server offers beside those of devices and clients."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """The tools available now, in the form offered to the model; MCP servers may connect and disconnect."""

    def repeatable(self, name: str) -> bool:
        """Whether a tool may run again when its first outcome is unknown; see `ServerTool.repeatable`."""

    def introduce(self, persona: Persona) -> str:
        """Return the system prompt's sentences about the persona; empty for the default one."""

    async def call(self, name: str, arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
        """Run a tool by the name in its offer, within its time limit; failures are results, never exceptions."""


ToolFactory = Callable[[ProviderOptions], AbstractAsyncContextManager[Sequence[ServerTool]]]
"""What an entry point of `fleet.tools` names: gives the tools for the block, and closes what they hold after it."""
