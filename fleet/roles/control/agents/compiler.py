"""Compile agents and assignments from SQL into Redis, where workers, edges and gateways read them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from fleet.adapters.redis.agents.compiled_agents import MOST_AGENTS, USUAL, CompiledAgents
from fleet.adapters.redis.client.store import Store
from fleet.adapters.sql.agent_rows import AgentRow, AgentRows
from fleet.adapters.sql.assignment_rows import AssignmentRows, Scope, tenants
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.adapters.sql.provider_rows import ProviderRow, ProviderRows
from fleet.adapters.sql.token_rows import FIRST_TENANT
from fleet.adapters.sql.transaction import Sql
from fleet.ground.errors import SlowQuery, Unavailable
from fleet.roles.control.problems import Problem
from fleet.wire.agents import AgentDocument, CompiledAgent, Endpoint, ProviderKind
from fleet.wire.control.agents import Compiled, Settled

log = logging.getLogger(__name__)

CHECK_SECONDS: Final = 30.0
"""Time between two comparisons of SQL with Redis: it repairs what a crash left undone, and devices join groups."""
INLINE_SECONDS: Final = 5.0
"""Longest time in which a request gives devices their agents; the rest is left to the next comparison."""
_PAGE = 200


class AgentCompiler:
    """Keeps the agents in Redis equal to those in SQL.

    Args:
        database: Of control.
        store: Redis.
    """

    def __init__(self, database: Database, store: Store) -> None:
        self._database = database
        self._compiled = CompiledAgents(store)

    async def run(self, fence: str) -> None:
        """Compare until cancelled; one process of control does so at a time."""
        while True:
            try:
                await self.refresh()
            except Unavailable as error:
                log.warning("agents not compared", extra={"reason": str(error)})
            await asyncio.sleep(CHECK_SECONDS)

    async def publish(self, tenant: int, agents: Sequence[int]) -> None:
        """Write agents of a tenant that have a published version."""
        rows = AgentRows(self._database, tenant)
        found = [await self._compile(rows, row) for agent in agents if (row := await rows.read(agent)) and row.live]
        if found:
            await self._compiled.publish(found)

    async def withdraw(self, agent: int) -> None:
        """Remove an agent that was deleted."""
        await self._compiled.withdraw(str(agent))

    async def set_site(self, tenant: int) -> None:
        """Write the agent of the site."""
        if tenant == FIRST_TENANT:
            row = await AssignmentRows(self._database, tenant).read("site", 0)
            await self._compiled.set_usual(str(row.agent) if row else "")

    async def settle(self, tenant: int, macs: Sequence[str] = (), *, whole: bool = False) -> Settled:
        """Give devices of a tenant the agents that they should have, for at most `INLINE_SECONDS`.

        Args:
            tenant: Whose.
            macs: Only these; empty for all.
            whole: Also those that have the right one, without a limit of time: Redis may have lost it.
        """
        rows, clock = AssignmentRows(self._database, tenant), asyncio.get_running_loop().time
        deadline, devices, after = clock() + INLINE_SECONDS, 0, -1
        while True:
            try:
                given, following = await rows.window(after, macs, whole=whole)
            except SlowQuery as error:
                # The query of a group: other tenants must not wait for it.
                log.warning("agents of a tenant not compared", extra={"tenant": tenant, "reason": str(error)})
                return Settled(devices=devices, more=True)
            await self._compiled.assign(given)
            await rows.note(given)
            devices += len(given)
            if following is None:
                return Settled(devices=devices)
            if clock() > deadline and not whole:
                return Settled(devices=devices, more=True)
            after = following

    async def refresh(self, *, whole: bool = False) -> Compiled:
        """Write what differs between SQL and Redis; everything with `whole`."""
        every = await tenants(self._database)
        agents = [one for tenant in every for one in await self._all_of(tenant)][:MOST_AGENTS]
        site = await AssignmentRows(self._database, FIRST_TENANT).read("site", 0)
        usual = str(site.agent) if site else ""
        wanted = {one.id: one.digest for one in agents} | ({USUAL: usual} if usual else {})
        if whole or await self._compiled.heads() != wanted:
            await self._compiled.publish(agents, usual, whole=True)
        devices = 0
        for tenant in every:
            rows = AssignmentRows(self._database, tenant)
            if whole or await rows.exists():
                await rows.tidy()
                devices += (await self.settle(tenant, whole=whole)).devices
        return Compiled(agents=len(agents), devices=devices)

    async def naming(self, tenant: int, provider: str) -> dict[int, str]:
        """Return the agents whose published version or draft names a provider, with their names."""
        rows, found = AgentRows(self._database, tenant), dict[int, str]()
        for row in await self._rows(rows):
            version = await rows.read_version(row.id, row.live) if row.live else None
            bodies = [row.draft, *([version.document] if version else [])]
            if any(provider in named_providers(AgentDocument.model_validate(body)).values() for body in bodies):
                found[row.id] = row.name
        return found

    async def _all_of(self, tenant: int) -> list[CompiledAgent]:
        rows = AgentRows(self._database, tenant)
        return [await self._compile(rows, row) for row in await self._rows(rows) if row.live]

    async def _rows(self, rows: AgentRows) -> list[AgentRow]:
        found: list[AgentRow] = []
        while page := await rows.page(found[-1].id if found else 0, _PAGE):
            found += page
        return found

    async def _compile(self, rows: AgentRows, row: AgentRow) -> CompiledAgent:
        version = await rows.read_version(row.id, row.live)
        document = AgentDocument.model_validate(version.document if version else {})
        endpoints, missing = await find_endpoints(self._database, row.tenant, document)
        if missing:
            log.warning("agent names a provider that is gone", extra={"agent": row.name, "providers": missing})
        return CompiledAgent(id=str(row.id), name=row.name, version=row.live, document=document, endpoints=endpoints)


def named_providers(document: AgentDocument) -> dict[ProviderKind, str]:
    """Return the names of the providers that a document names, by kind."""
    named: dict[ProviderKind, str | None] = {
        "chat": document.chat.provider,
        "recognition": document.recognition.provider,
        "voice": document.voice.provider,
    }
    return {kind: name for kind, name in named.items() if name}


async def find_endpoints(
    sql: Sql, tenant: int, document: AgentDocument
) -> tuple[dict[ProviderKind, Endpoint], list[str]]:
    """Return the endpoints of the providers that a document names, and the names of those that there are not."""
    rows = ProviderRows(sql, tenant)
    found: dict[ProviderKind, Endpoint] = {}
    missing: list[str] = []
    for kind, name in named_providers(document).items():
        row = await rows.find(name)
        if row is None or row.kind != kind:
            missing.append(name)
        else:
            found[kind] = endpoint_of(row)
    return found, missing


async def check_document(sql: Sql, tenant: int, document: AgentDocument) -> None:
    """Check what a document names before it is published.

    Raises:
        Problem: A provider or a voice does not exist (422).
    """
    _, missing = await find_endpoints(sql, tenant, document)
    faults = [{"at": "draft", "message": f"there is no provider {name} of this kind"} for name in missing]
    provider, voice = document.voice.provider, document.voice.name
    row = await ProviderRows(sql, tenant).find(provider) if provider else None
    if row and row.voices and voice and voice not in row.voices:
        faults.append({"at": "draft.voice.name", "message": f"the provider {row.name} has no voice {voice}"})
    if faults:
        raise Problem(422, "not-publishable", faults[0]["message"], errors=faults)


def endpoint_of(row: ProviderRow) -> Endpoint:
    """Return a provider as roles need it; its key stays encrypted."""
    return Endpoint(
        adapter=row.adapter,
        base_url=row.base_url or None,
        key=row.secret,
        model=row.model or None,
        voice=row.voices[0] if row.voices else None,
        sample_rate=row.sample_rate or None,
    )


def assigned_object(scope: Scope, ref: int) -> str:
    """Return what has an agent, as the audit log names it."""
    return {"device": f"device/{mac_text(ref)}", "group": f"group/{ref}", "site": "site"}[scope]


def changed_fields(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    """Return what differs between two objects, before and after, for the audit."""
    names = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    return {name: before.get(name) for name in sorted(names)}, {name: after.get(name) for name in sorted(names)}
