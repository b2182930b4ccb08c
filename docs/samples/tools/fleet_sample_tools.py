"""A tool that flips a coin."""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pydantic import JsonValue

from fleet.core.ports import ProviderOptions, ToolOffer
from fleet.core.server_tools import Caller, ServerResult, ServerTool

_COIN = ToolOffer(
    "flip_coin",
    "Flip a coin; say which side is up.",
    {"type": "object", "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 10}}},
)


async def _flip(arguments: dict[str, JsonValue], caller: Caller) -> ServerResult:
    times = arguments.get("times")
    return ServerResult([secrets.choice(("heads", "tails")) for _ in range(times if isinstance(times, int) else 1)])


@asynccontextmanager
async def open_tools(options: ProviderOptions) -> AsyncIterator[Sequence[ServerTool]]:
    """Give the tools for the block; the entry point names this function. Open connections here, close them after."""
    # Flipped again, the coin falls otherwise: the first result may have been spoken already.
    yield [ServerTool(_COIN, _flip, repeatable=False)]
