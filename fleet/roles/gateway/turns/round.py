"""The calls of one message of the model, in the order of section 7.6 of the API's document."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.core.toolbox import Prepared, Refusal
from fleet.roles.gateway.client import Client
from fleet.wire.gateway_messages import Status


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call of a server's tool."""

    name: str
    arguments: dict[str, JsonValue]


Ready = Prepared | ServerCall | Refusal
"""A checked call: of a client's tool, of a server's tool, or the reason why it is not made."""


@dataclass(slots=True, eq=False)
class _Wave:
    """Callbacks that are sent together; `size` is announced to the client before."""

    size: int
    left: int
    begun: asyncio.Event
    announced: bool = False


class Round:
    """The calls of one message: the server's tools run first, then the client's; the calls of a group run in parallel.

    Args:
        ready: The calls by their ids.
        peer: The client; gets the number of callbacks before them.
        most: Most pending callbacks; the others are sent when these are answered.
    """

    def __init__(self, ready: Mapping[str, Ready], peer: Client, most: int) -> None:
        self._ready = ready
        self._peer = peer
        self._servers = sum(isinstance(one, ServerCall) for one in ready.values())
        clients = [call_id for call_id, one in ready.items() if isinstance(one, Prepared)]
        groups = [clients[at : at + most] for at in range(0, len(clients), most)]
        self._waves = [_Wave(len(group), len(group), asyncio.Event()) for group in groups]
        self._wave_of = {call_id: wave for group, wave in zip(groups, self._waves, strict=True) for call_id in group}
        self._announcing = asyncio.Lock()
        self.server_done(0)

    @property
    def refusals(self) -> list[Refusal]:
        """The reasons for the calls that are not made."""
        return [one for one in self._ready.values() if isinstance(one, Refusal)]

    def take(self, call_id: str) -> Ready:
        return self._ready[call_id]

    def server_done(self, count: int = 1) -> None:
        """Count a server's tool that has run."""
        self._servers -= count
        if not self._servers:
            self._go_on()

    def client_done(self, call_id: str) -> None:
        """Count a callback that was answered, or will not be sent."""
        self._wave_of[call_id].left -= 1
        self._go_on()

    async def until_turn_of(self, call_id: str) -> None:
        """Wait until this callback may be sent."""
        await self._wave_of[call_id].begun.wait()

    async def announce(self, call_id: str) -> None:
        """Send the number of callbacks in this group to the client, once.

        Raises:
            ClientGone: The client has left.
        """
        wave = self._wave_of[call_id]
        async with self._announcing:
            if not wave.announced:
                await self._peer.send(Status(status="waiting_for_tools", data={"pending_tools": wave.size}))
                wave.announced = True

    def _go_on(self) -> None:
        for wave in self._waves:
            if not wave.begun.is_set():
                wave.begun.set()
                return
            if wave.left:
                return
