"""The tool lists that devices announced."""

from collections.abc import Awaitable, Sequence
from typing import cast

from pydantic import TypeAdapter

from fleet.store.connect import Store
from fleet.store.keys import DEVICE_SECONDS
from fleet.wire.mcp import ToolSpec

_TOOLS: TypeAdapter[tuple[ToolSpec, ...]] = TypeAdapter(tuple[ToolSpec, ...])


class ToolLists:
    """Reads and writes tool lists."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, mac: str) -> tuple[ToolSpec, ...]:
        text = await self._store.ask(cast("Awaitable[str | None]", self._store.client.get(self._store.keys.tools(mac))))
        return _TOOLS.validate_json(text) if text else ()

    async def write(self, mac: str, tools: Sequence[ToolSpec], board: str, firmware: str) -> None:
        """Keep a device's tools, and that they are those of its present connection."""
        names = self._store.keys
        device = names.device(mac)
        epoch = await self._store.ask(cast("Awaitable[str | None]", self._store.client.hget(device, "ep")))
        about = {"tep": epoch or "", "board": board, "fw": firmware}
        pipe = self._store.client.pipeline(transaction=False)
        pipe.set(names.tools(mac), _TOOLS.dump_json(tuple(tools)), ex=DEVICE_SECONDS)
        pipe.hset(device, mapping={field: value for field, value in about.items() if value})
        await self._store.ask(cast("Awaitable[list[object]]", pipe.execute()))
