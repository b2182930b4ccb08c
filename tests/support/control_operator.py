"""Somebody with a command line and a token of control."""

import asyncio
import json
from typing import Any

from tests.support.command_line import CommandLine
from tests.support.control_server import FULL, ControlStage


class Operator:
    """Runs commands over a running control."""

    def __init__(self, fleet: CommandLine, stage: ControlStage) -> None:
        self._fleet, self.stage = fleet, stage
        self.tokens = stage.folder / "tokens"

    @property
    def environment(self) -> dict[str, str]:
        url = str(self.stage.client.base_url)
        return {
            "FLEET_CONTROL_URL": url,
            "FLEET_CONTROL_TOKEN": FULL,
            "FLEET_OPERATOR_TOKENS_FILE": str(self.tokens),
        }

    async def run(self, *words: str, code: int = 0) -> str:
        done = await asyncio.to_thread(self._fleet.run, *words, **self.environment)
        assert done.returncode == code, (words, done)
        return done.stdout + done.stderr if code else done.stdout

    async def rows(self, *words: str) -> list[dict[str, Any]]:
        """Return what a command lists or has changed, by its JSON."""
        (found,) = json.loads(await self.run(*words, "--json")).values()
        return list(found)

    async def row(self, *words: str) -> dict[str, Any]:
        """Return the one thing that a command has changed, by its JSON."""
        (found,) = await self.rows(*words)
        return found
