"""A site of a few devices, whose agents change."""

from typing import Any
from urllib.parse import quote

from tests.support.control_server import FULL, ControlStage

MACS = [f"02:00:00:00:00:0{number}" for number in range(6)]
OWN, OF_GROUP = "it has an agent of its own", "one of its groups has an agent"
NEARER, SAME = "another of its groups goes before", "its agent stays the same"


class AgentSite:
    """Six devices of one tenant, one of another, and agents."""

    def __init__(self, stage: ControlStage) -> None:
        self.stage = stage

    async def ask(self, verb: str, status: int = 200, token: str = FULL, **body: Any) -> Any:
        answer = await self.stage.ask(verb, token, **({"json": body} if body else {}))
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def agent(self, name: str) -> int:
        return int((await self.ask("POST /v1/agents", 201, name=name))["id"])

    async def group(self, name: str, *macs: str, query: str = "") -> int:
        made = (await self.ask("POST /v1/groups", 201, name=name, query=query))["id"]
        if macs:
            await self.ask(f"POST /v1/groups/{made}/members:add", macs=list(macs))
        return int(made)

    async def assign(self, agent: int, status: int = 200, **whom: Any) -> Any:
        return await self.ask(f"POST /v1/agents/{agent}:assign", status, **whom)

    async def preview(self, agent: int | None, **whom: Any) -> tuple[int, dict[str, int]]:
        """Return how many devices would change, and why the others would not."""
        found = await self.ask("POST /v1/assignments:preview", agent=agent, **whom)
        kept = {one["reason"]: one["devices"] for one in found["skipped"]}
        assert found["devices"] == found["changing"] + sum(kept.values()), found
        return found["changing"], kept

    async def preview_group(self, group: int, **change: Any) -> tuple[int, dict[str, int]]:
        """Return how many devices would change by a change of a group, and why the others would not."""
        found = await self.ask(f"POST /v1/groups/{group}:preview", **(change or {"query": None}))
        kept = {one["reason"]: one["devices"] for one in found["skipped"]}
        assert found["devices"] == found["changing"] + sum(kept.values()), found
        return found["changing"], kept

    async def listed(self, query: str) -> int:
        """Return how many devices the list of a query has."""
        return len((await self.ask(f"GET /v1/devices?filter={quote(query)}"))["items"])
