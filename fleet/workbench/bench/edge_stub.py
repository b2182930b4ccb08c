"""An edge without audio: it announces itself, reads its inbox, and turns texts into utterances."""

import asyncio
import itertools
import secrets
from collections.abc import Callable

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.tasks import keep_running
from fleet.roles.edge.announcer import Announcer
from fleet.wire.edge_messages import EndAnswerCommand, UtteranceEvent
from fleet.workbench.bench.model import words
from fleet.workbench.bench.silent_device import SilentDevice
from fleet.workbench.local_servers.ports import LOOPBACK


class EdgeStub:
    """An edge without audio.

    Args:
        store: Where edges and workers write to each other.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._inboxes = Inboxes(store)
        self._id = f"bench-{secrets.token_hex(4)}"
        self._announcer = Announcer(Edges(store), lambda: EdgeRecord(self._id, LOOPBACK, 9, 0))
        self._numbers = itertools.count()
        self._ended: dict[str, Callable[[], None]] = {}

    async def run(self) -> None:
        """Be an edge until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._announcer.run(), name="announcer")
            group.create_task(keep_running("inbox", self._read), name="inbox")

    async def open(self) -> None:
        """Wait until workers may give it sessions."""
        await self._announcer.announced.wait()

    async def say(self, calls: int, device: SilentDevice, ended: Callable[[], None]) -> None:
        """Let a device's user say what leads to so many calls; `ended` is called when the answer is written."""
        turn = f"{self._id}-{next(self._numbers)}"
        self._ended[turn] = ended
        said = UtteranceEvent(device=device.mac, session=device.session, turn=turn, text=words(calls, turn))
        await self._inboxes.to_shard(self._store.keys.shard(device.mac), said)

    async def _read(self) -> None:
        async for command in self._inboxes.read_edge(self._id):
            if isinstance(command, EndAnswerCommand) and (ended := self._ended.pop(command.turn, None)):
                ended()
