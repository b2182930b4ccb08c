"""A client of a Cluster. Why not redis-py's own: docs/adr/0008-redis-cluster.md."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.commands import AsyncCoreCommands
from redis.event import EventDispatcher
from redis.exceptions import AskError, ClusterError, MovedError, ResponseError

from fleet.adapters.redis.client.client import Batch, Command, Streams, answer_saved, execute, to_streams
from fleet.adapters.redis.client.pipeline import Words
from fleet.adapters.redis.client.retries import RetryPolicy
from fleet.adapters.redis.client.slots import Place, SlotMap
from fleet.adapters.redis.client.url import RedisAddress

POLL_SECONDS = 0.02
"""Pause between two looks at several streams: a node cannot block on keys of more than one slot."""

_REDIRECTS = 5
_EVERYWHERE: Final = frozenset({"FUNCTION LOAD", "FUNCTION FLUSH", "FLUSHALL", "PING"})

T = TypeVar("T")


class ClusterClient(AsyncCoreCommands):
    """Sends each command to the node of its key; has all methods of `ServerClient` that the store uses.

    Args:
        address: Some of the nodes.
        places: Commands, and batches, at a time.
        answer: Longest time of one attempt in seconds.
    """

    _event_dispatcher = EventDispatcher()

    def __init__(self, address: RedisAddress, places: int, answer: float) -> None:
        self._slots = SlotMap(address, 2 * places)
        self.retries = RetryPolicy(places, self._slots.refresh, answer)
        self.batch_retries = RetryPolicy(places, self._slots.refresh, answer)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        if args[0] in _EVERYWHERE:
            return await self.retries.run(lambda: self._everywhere(args, options))
        return await self.retries.run(lambda: self._route(args, options))

    async def attempt(self, *words: Any) -> Any:
        """Send a command once, without retries."""
        return await self._route(words, {})

    def pipeline(self, transaction: bool = False) -> Pipeline:
        return cast("Pipeline", Batch(self.batch_retries, self._send))

    async def fcall_saved(self, function: str, keys: Sequence[str], args: Words) -> tuple[Any, int]:
        """Run a function, then wait for a replica; return the answer, and how many replicas have it."""

        async def send(node: Redis, asking: bool) -> tuple[Any, int]:
            return await answer_saved(node, ("FCALL", function, len(keys), *keys, *args), asking=asking)

        return await self.batch_retries.run(lambda: self._direct(keys[0], send))

    async def read_streams(self, after: Mapping[str, str], count: int, seconds: float) -> Streams:
        """Return the new entries of the streams; wait for them up to `seconds`."""
        if len(after) == 1:
            ((key, last),) = after.items()
            words = ("XREAD", "COUNT", count, "BLOCK", round(seconds * 1000), "STREAMS", key, last)
            return to_streams(await self.retries.run(lambda: self._route(words, {})))
        commands: list[Command] = [(("XREAD", "COUNT", count, "STREAMS", *pair), {}) for pair in after.items()]
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            answers = await self.batch_retries.run(lambda: self._send(commands))
            found = [stream for answer in answers for stream in to_streams(answer)]
            if found or clock() >= until:
                return found
            await asyncio.sleep(POLL_SECONDS)

    async def fits(self) -> bool:
        """Whether the server is of the kind that the address names."""
        try:
            await self.retries.run(self._slots.ready)
        except ResponseError as error:
            if "cluster support disabled" in str(error):
                return False
            raise
        return True

    async def replication(self, key: str) -> Mapping[str, Any]:
        """Return the section `replication` of INFO from the key's node."""

        async def ask(node: Redis, asking: bool) -> Any:
            return await execute(node, "INFO", "replication")

        return cast("Mapping[str, Any]", await self.retries.run(lambda: self._direct(key, ask)))

    async def primaries(self) -> list[Redis]:
        """Return a client of each server that takes writes."""
        await self.retries.run(self._slots.ready)
        return list(self._slots.primaries())

    def node_name(self, key: str) -> str:
        """Return the name of the key's node according to the current slot map."""
        host, port = self._slots.owner(key)
        return f"{host}:{port}"

    async def aclose(self) -> None:
        await self._slots.aclose()

    async def _everywhere(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        await self._slots.ready()
        return [await execute(node, *args, **options) for node in self._slots.primaries()][-1]

    async def _route(self, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        async def send(node: Redis, asking: bool) -> Any:
            if not asking:
                return await execute(node, *args, **options)
            pipe = node.pipeline(transaction=False)
            pipe.execute_command("ASKING")
            pipe.execute_command(*args, **options)
            return (await pipe.execute())[1]

        return await self._direct(_key(args), send)

    async def _direct(self, key: str, send: Callable[[Redis, bool], Awaitable[T]]) -> T:
        """Call `send` with the node of a key, and follow redirections when the slot has moved or is moving."""
        await self._slots.ready()
        place, asking = self._slots.owner(key), False
        for _ in range(_REDIRECTS):
            try:
                return await send(self._slots.node(place), asking)
            except MovedError as error:
                place, asking = (error.host or place[0], error.port), False
                self._slots.move(error.slot_id, place)
            except AskError as error:
                place, asking = (error.host or place[0], error.port), True
        raise ClusterError("redirected too often")

    async def _send(self, commands: Sequence[Command]) -> list[Any]:
        """Send each node its commands in one pipeline; repeat redirected ones one by one."""
        await self._slots.ready()
        groups: dict[Place, list[int]] = {}
        for at, (args, _) in enumerate(commands):
            groups.setdefault(self._slots.owner(_key(args)), []).append(at)
        answers: list[Any] = [None] * len(commands)
        for place, positions in groups.items():
            pipe = self._slots.node(place).pipeline(transaction=False)
            for at in positions:
                pipe.execute_command(*commands[at][0], **commands[at][1])
            for at, answer in zip(positions, await pipe.execute(raise_on_error=False), strict=True):
                answers[at] = await self._route(*commands[at]) if isinstance(answer, AskError) else answer
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers


def _key(args: Sequence[Any]) -> str:
    """Return a command's first key; all others must be on the same node."""
    match args[0]:
        case "FCALL":
            return str(args[3])
        case "XREAD":
            return str(args[args.index("STREAMS") + 1])
        case _:
            return str(args[1])
