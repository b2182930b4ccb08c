"""The tool lists that devices announced."""

import asyncio
import base64
import zlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, cast

from pydantic import TypeAdapter

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.keys import DEVICE_SECONDS
from fleet.adapters.redis.shards.owner import Owner
from fleet.wire.mcp import ToolSpec

_TOOLS: TypeAdapter[tuple[ToolSpec, ...]] = TypeAdapter(tuple[ToolSpec, ...])
_PACKED = "z:"
_AT_ONCE = 16_384
"""Bytes that are compressed on the event loop: this takes half a millisecond. More goes to a thread."""
_MOST_DECODED: Final = 64
_LARGEST_DECODED: Final = 16_384
"""Bytes of JSON of a list that is kept decoded; as objects they take twenty times as much, all lists 20 MB."""
_decoded: dict[str, tuple[ToolSpec, ...]] = {}
"""Lists that were decoded last, by their stored form: each turn of a device reads its own."""


class ToolLists:
    """Reads and writes tool lists."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, mac: str) -> tuple[ToolSpec, ...]:
        text = await self._store.ask(cast("Awaitable[str | None]", self._store.client.get(self._store.keys.tools(mac))))
        return decode_tools(text or "")

    async def write(
        self, owner: Owner, mac: str, tools: Sequence[ToolSpec] | bytes | str, about: Mapping[str, str]
    ) -> None:
        """Store a device's tools.

        Args:
            owner: Of the device's shard.
            mac: The device.
            tools: Its whole list; bytes are the list as JSON, a text is its stored form.
            about: Fields of its record: `tep`, the epoch of the connection with this list; `pg`, the digests of the
                list's pages; `board`; `fw`.

        Raises:
            Fenced: The shard is another worker's now.
        """
        await self._store_list(owner, mac, tools if isinstance(tools, str) else await pack_tools(tools), about)

    async def keep(self, owner: Owner, mac: str, about: Mapping[str, str]) -> bool:
        """Store fields of a device's record, as `write` does; its tools are the stored ones.

        Returns:
            False if no tools are stored (evicted, or lost in a failover); then nothing was written.

        Raises:
            Fenced: The shard is another worker's now.
        """
        return await self._store_list(owner, mac, "", about)

    async def _store_list(self, owner: Owner, mac: str, packed: str, about: Mapping[str, str]) -> bool:
        names = self._store.keys
        fields = [part for field in about.items() for part in field]
        (stored,) = await self._store.call(
            "fleet_tool_list",
            [names.own(names.shard(mac)), names.device(mac), names.tools(mac)],
            [owner.worker, owner.fence, DEVICE_SECONDS, packed, *fields],
        )
        return stored == "1"

    async def register(self, owner: Owner, mac: str, dialect: str, tools: Sequence[ToolSpec]) -> None:
        """Store the tools that a device registered, and its dialect.

        Raises:
            Fenced: The shard is another worker's now.
        """
        names = self._store.keys
        await self._store.call(
            "fleet_register",
            [names.own(names.shard(mac)), names.device(mac), names.tools(mac), names.session(mac)],
            [owner.worker, owner.fence, DEVICE_SECONDS, dialect, await pack_tools(tools)],
        )


async def pack_tools(tools: Sequence[ToolSpec] | bytes) -> str:
    """Return the stored form of a tool list without blocking the loop; bytes are JSON already."""
    document = tools if isinstance(tools, bytes) else _TOOLS.dump_json(tuple(tools))
    return await asyncio.to_thread(_pack, document) if len(document) > _AT_ONCE else _pack(document)


def _pack(document: bytes) -> str:
    """Compress a list: it is the largest part of an idle device's data."""
    return _PACKED + base64.b64encode(zlib.compress(document, 9)).decode()


def decode_tools(text: str) -> tuple[ToolSpec, ...]:
    """Return a stored tool list, compressed or as JSON; an empty text is an empty list.

    Nobody changes the tools: devices with the same list share them.
    """
    kept = _decoded.get(text)
    if kept is not None or not text:
        return kept or ()
    packed = text.startswith(_PACKED)
    document = zlib.decompress(base64.b64decode(text.removeprefix(_PACKED))) if packed else text.encode()
    tools = _TOOLS.validate_json(document)
    if len(document) <= _LARGEST_DECODED:
        _decoded[text] = tools
        if len(_decoded) > _MOST_DECODED:
            del _decoded[next(iter(_decoded))]
    return tools
