"""`/v1/agents`: drafts, published versions, and a trial in text."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import Path, Request, Response

from fleet.adapters.sql.agent_rows import AgentRow, AgentRows, AgentVersionRow
from fleet.adapters.sql.assignment_rows import AssignmentRows
from fleet.adapters.sql.token_rows import NameTaken
from fleet.core.permissions import AGENTS_READ, AGENTS_WRITE
from fleet.ground.errors import ProviderError
from fleet.roles.control.access import Who, milliseconds
from fleet.roles.control.agents.compiler import (
    AgentCompiler,
    assigned_object,
    changed_fields,
    check_document,
    find_endpoints,
)
from fleet.roles.control.agents.reach import Most, check_agent
from fleet.roles.control.agents.trial import try_document
from fleet.roles.control.changes import OpenChange
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import VERSIONED, Routes
from fleet.roles.control.services import ControlServices
from fleet.roles.control.versions import etag, expected_version
from fleet.wire.agents import AgentDocument, CompiledAgent
from fleet.wire.control.agents import Agent, AgentChange, AgentVersion, NewAgent, Rollback, Trial, TrialAnswer
from fleet.wire.control.shapes import USUAL_MOST, ListPage, time_of

MOST = 300
"""Agents of a tenant."""
_MOST_NAMED = 500
"""Assignments of a deleted agent that the audit log names."""
TRIAL_SECONDS = 60.0
AgentId = Annotated[int, Path(ge=1, le=2**53)]


class AgentsRoutes:
    """Makes, changes, publishes and tries agents."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        self._compiler = AgentCompiler(services.database, services.store)
        routes.add("GET /agents", self.list_agents, AGENTS_READ)
        routes.add("POST /agents", self.create, AGENTS_WRITE, model=Agent, status=201)
        routes.add("GET /agents/{agent}", self.read, AGENTS_READ, model=Agent)
        routes.add("PATCH /agents/{agent}", self.change, AGENTS_WRITE, model=Agent, notes=VERSIONED)
        routes.add("DELETE /agents/{agent}", self.remove, AGENTS_WRITE, status=204, notes=VERSIONED)
        routes.add("GET /agents/{agent}/versions", self.list_versions, AGENTS_READ)
        routes.add("POST /agents/{agent}:publish", self.publish, AGENTS_WRITE, model=AgentVersion, notes=VERSIONED)
        routes.add("POST /agents/{agent}:rollback", self.roll_back, AGENTS_WRITE, model=AgentVersion, notes=VERSIONED)
        routes.add("POST /agents/{agent}:try", self.try_draft, AGENTS_WRITE, repeatable=True)

    async def list_agents(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Agent]:
        """Return the agents in the order in which they were made."""
        place = self._services.cursors.read(who, "agents", cursor)
        after = int(str(place[0])) if place else 0
        rows = await AgentRows(self._services.database, who.tenant).page(after, limit + 1)
        more = self._services.cursors.write(who, "agents", [rows[limit - 1].id]) if len(rows) > limit else None
        return ListPage(items=[_agent(row) for row in rows[:limit]], next=more)

    async def create(self, body: NewAgent, who: Who, request: Request) -> Response:
        """Make an agent. It counts for nobody before it is published and assigned."""
        async with self._services.changes.begin(request) as change:
            rows = AgentRows(change.sql, who.tenant)
            if await rows.count() >= MOST:
                raise Problem(409, "too-many", f"there may be {MOST} agents")
            try:
                row = await rows.add(body.name, body.notes, _stored(body.draft), milliseconds())
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            await change.audit("agent.create", f"agent/{row.id}", before={}, after={"name": row.name})
            return change.answer(_agent(row), status=201, headers={"ETag": etag(row.version)})

    async def read(self, agent: AgentId, who: Who) -> Response:
        """Return an agent with its draft."""
        row = await AgentRows(self._services.database, who.tenant).read(agent)
        if row is None:
            raise not_found("agent")
        return Response(
            _agent(row).model_dump_json(), media_type="application/json", headers={"ETag": etag(row.version)}
        )

    async def change(self, agent: AgentId, body: AgentChange, who: Who, request: Request) -> Response:
        """Change the draft, name or notes of an agent. What is published stays as it is."""
        async with self._services.changes.begin(request) as change:
            rows = AgentRows(change.sql, who.tenant)
            before = await rows.read(agent)
            wanted: dict[str, Any] = {}
            for name in body.model_fields_set:
                value = getattr(body, name)
                if value is not None:
                    wanted[name] = _stored(value) if isinstance(value, AgentDocument) else value
            try:
                after = await rows.change(agent, expected_version(request), **wanted)
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            if before is None or after is None:
                raise not_found("agent")
            old, new = changed_fields(_changeable(before), _changeable(after))
            await change.audit("agent.change", f"agent/{agent}", before=old, after=new)
            return change.answer(_agent(after), headers={"ETag": etag(after.version)})

    async def remove(self, agent: AgentId, who: Who, request: Request, most: Most = USUAL_MOST) -> Response:
        """Delete an agent with its versions and assignments; its devices get the next agent that is theirs.

        If more devices than `most` have it, it is refused (409, `more-devices`).
        """
        database = self._services.database
        async with self._services.rules.begin(request, lambda: check_agent(database, who, agent, most)) as change:
            rows = AgentRows(change.sql, who.tenant)
            row = await rows.read(agent)
            given = await AssignmentRows(change.sql, who.tenant).page(("", 0), _MOST_NAMED, agent)
            if row is None or not await rows.remove(agent, expected_version(request)):
                raise not_found("agent")
            before = {**_changeable(row), "assignments": [assigned_object(one.scope, one.ref) for one in given]}
            await change.audit("agent.delete", f"agent/{agent}", before=before, after={})
            answer = change.answer(status=204)
        await self._compiler.set_site(who.tenant)
        await self._compiler.withdraw(agent)
        await self._compiler.settle(who.tenant)
        return answer

    async def list_versions(
        self, agent: AgentId, who: Who, limit: Limit = 50, cursor: Cursor = ""
    ) -> ListPage[AgentVersion]:
        """Return the published versions of an agent, the newest first."""
        rows = AgentRows(self._services.database, who.tenant)
        row = await rows.read(agent)
        if row is None:
            raise not_found("agent")
        place = self._services.cursors.read(who, f"agents/{agent}/versions", cursor)
        before = int(str(place[0])) if place else 2**31 - 1
        found = await rows.versions(agent, before, limit + 1)
        last = [found[limit - 1].number] if len(found) > limit else None
        more = self._services.cursors.write(who, f"agents/{agent}/versions", last) if last else None
        return ListPage(items=[_version(one, row.live) for one in found[:limit]], next=more)

    async def publish(self, agent: AgentId, who: Who, request: Request, most: Most | None = None) -> Response:
        """Make the draft the next version: it counts from the next turn on.

        If `most` is named and more devices have the agent, it is refused (409, `more-devices`).
        """
        await check_agent(self._services.database, who, agent, most)
        async with self._services.changes.begin(request) as change:
            rows = AgentRows(change.sql, who.tenant)
            row = await rows.read(agent)
            if row is None:
                raise not_found("agent")
            await check_document(change.sql, who.tenant, AgentDocument.model_validate(row.draft))
            version = await rows.add_version(row, who.actor, milliseconds())
            answer = await _make_live(change, rows, row, version, "agent.publish", expected_version(request))
        await self._compiler.publish(who.tenant, [agent])
        return answer

    async def roll_back(self, agent: AgentId, body: Rollback, who: Who, request: Request) -> Response:
        """Make an earlier version count again; the draft stays as it is. `most` as with `:publish`."""
        await check_agent(self._services.database, who, agent, body.most)
        async with self._services.changes.begin(request) as change:
            rows = AgentRows(change.sql, who.tenant)
            row, version = await rows.read(agent), await rows.read_version(agent, body.number)
            if row is None:
                raise not_found("agent")
            if version is None:
                raise not_found("version")
            await check_document(change.sql, who.tenant, AgentDocument.model_validate(version.document))
            answer = await _make_live(change, rows, row, version, "agent.rollback", expected_version(request))
        await self._compiler.publish(who.tenant, [agent])
        return answer

    async def try_draft(self, agent: AgentId, body: Trial, who: Who) -> TrialAnswer:
        """Let the model of the draft answer a text. No tool runs, and nothing is kept."""
        row = await AgentRows(self._services.database, who.tenant).read(agent)
        if row is None:
            raise not_found("agent")
        document = AgentDocument.model_validate(row.draft)
        await check_document(self._services.database, who.tenant, document)
        endpoints, _ = await find_endpoints(self._services.database, who.tenant, document)
        compiled = CompiledAgent(id=str(row.id), name=row.name, document=document, endpoints=endpoints)
        begun = time.monotonic()
        try:
            async with asyncio.timeout(TRIAL_SECONDS):
                text, usage = await try_document(self._services.models, compiled, body.text)
        except TimeoutError:
            raise Problem(504, "model-too-slow", f"the model did not answer within {TRIAL_SECONDS:g} s") from None
        except ProviderError as error:
            raise Problem(502, "model-failed", str(error)[:500]) from error
        seconds = round(time.monotonic() - begun, 3)
        return TrialAnswer(text=text, seconds=seconds, input_tokens=usage.input, output_tokens=usage.output)


async def _make_live(
    change: OpenChange, rows: AgentRows, row: AgentRow, version: AgentVersionRow, action: str, expected: int | None
) -> Response:
    """Note in SQL which version counts."""
    after = await rows.change(row.id, expected, live=version.number)
    assert after is not None  # noqa: S101 - it was read in this transaction
    await change.audit(action, f"agent/{row.id}", before={"live": row.live}, after={"live": version.number})
    return change.answer(_version(version, version.number), headers={"ETag": etag(after.version)})


def _stored(document: AgentDocument) -> dict[str, Any]:
    return document.model_dump(mode="json", exclude_defaults=True)


def _changeable(row: AgentRow) -> dict[str, Any]:
    return {"name": row.name, "notes": row.notes, "draft": row.draft}


def _agent(row: AgentRow) -> Agent:
    return Agent(
        id=row.id,
        name=row.name,
        notes=row.notes,
        draft=AgentDocument.model_validate(row.draft),
        live=row.live,
        created=time_of(row.created),
        version=row.version,
    )


def _version(row: AgentVersionRow, live: int) -> AgentVersion:
    return AgentVersion(
        number=row.number,
        document=AgentDocument.model_validate(row.document),
        author=row.author,
        created=time_of(row.created),
        live=row.number == live,
    )
