"""How many devices a change would give another agent: said before the change, and the bound that the change has."""

from typing import Annotated, Final

from fastapi import Query

from fleet.adapters.sql.agent_uses import AgentUses
from fleet.adapters.sql.assignment_effects import AssignmentEffects, MemberTrial
from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows, Scope
from fleet.adapters.sql.database import LOOK_SECONDS, Database
from fleet.adapters.sql.group_rows import GroupRow
from fleet.adapters.sql.job_targets import JobTargets, TargetCounts
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.transaction import Sql
from fleet.roles.control.access import Principal
from fleet.roles.control.device_queries import check_agentless
from fleet.roles.control.problems import Problem, not_found
from fleet.wire.control.agents import NewAssignment
from fleet.wire.control.groups import GroupTrial
from fleet.wire.topics import canonical_mac

Most = Annotated[int, Query(ge=0, le=2**31, description="Devices that may get another agent by it.")]
"""The type of an endpoint's parameter that bounds a change."""
WOULD: Final = "would get another agent"


async def assignment_targets(
    database: Database, who: Principal, whom: tuple[Scope, int], body: NewAssignment, agent: int | None
) -> JobTargets:
    """Return the devices of an assignment; without an agent those of one that is taken away."""
    (scope, ref), rank = whom, body.rank
    if agent is None and (known := await AssignmentRows(database, who.tenant).read(scope, ref)):
        rank = known.rank
    wanted = AssignmentRow(scope, ref, agent or 0, rank)
    return await AssignmentEffects(database, who.tenant).targets(wanted, removed=agent is None)


async def group_targets(database: Database, who: Principal, group: GroupRow, trial: GroupTrial) -> JobTargets | None:
    """Return the devices of a change of a group; None if nobody gets another agent by it, as no agent depends on it.

    Raises:
        Problem: The group is of the other kind (409), it has an agent and its query would name agents (409), or the
            change is not exactly one (422).
    """
    if sum(one is not None for one in (trial.name, trial.query, trial.add, trial.remove)) > 1:
        raise Problem(422, "invalid", "name at most one of name, query, add and remove")
    effects = AssignmentEffects(database, who.tenant)
    if trial.name is not None:
        return None if trial.name == group.name else await effects.of_names(group, trial.name)
    if trial.query is not None and bool(trial.query.strip()) != bool(group.query):
        raise Problem(409, "other-kind", "a static group gets no query, and a dynamic one keeps a query")
    if group.query and (trial.add or trial.remove):
        raise Problem(409, "dynamic", "the members of a dynamic group follow from its query")
    if trial.query is not None and not trial.query.strip():
        return None
    found = MemberTrial(trial.query or "", tuple(trial.add or ()), tuple(trial.remove or ()))
    if trial.query and await AssignmentRows(database, who.tenant).read("group", group.id):
        check_agentless(trial.query)
    return await effects.of_members(group, found)


async def check_group(database: Database, who: Principal, group: GroupRow | None, trial: GroupTrial, most: int) -> None:
    """Check that not more devices get another agent by a change of a group than whoever asks has said.

    Raises:
        Problem: There are more, or the group cannot be changed so (409), or it does not exist (404).
    """
    if group is None:
        raise not_found("group")
    targets = await group_targets(database, who, group, trial)
    if targets is not None:
        what = WOULD if trial.name is None else "may get another agent"
        check_number(await targets.count_at_most(), most, f"groups/{group.id}:preview", what)


async def check_agent(database: Database, who: Principal, agent: int, most: int | None) -> None:
    """Check that not more devices have an agent than whoever changes it has said, if he has.

    Raises:
        Problem: There are more (409).
    """
    if most is not None:
        targets = await AgentUses(database, who.tenant).targets(agent)
        check_number(await targets.count_at_most(), most, f"agents/{agent}:preview", "have this agent")


def check_number(counts: TargetCounts, most: int, preview: str, what: str = WOULD) -> None:
    """Check that a change does not concern more devices than whoever asks has said.

    Args:
        counts: Of the change. If it took too long to count, as many as it can be must have been said.
        most: What was said.
        preview: The path that counts.
        what: What the devices do.

    Raises:
        Problem: There are more (409).
    """
    if counts.reached <= most:
        return
    number = f"{counts.reached} devices {what}"
    if not counts.counted:
        number = f"counting took longer than {LOOK_SECONDS:.0f} s; at most {number}"
    raise Problem(409, "more-devices", f"{number}, and `most` is {most}: see POST /v1/{preview}")


async def whom_of(sql: Sql, who: Principal, body: NewAssignment) -> tuple[Scope, int]:
    """Return scope and ref of an assignment, if what it names is the tenant's.

    Raises:
        Problem: It names not exactly one (422), or there is no such device or group (404).
    """
    if sum(one is not None for one in (body.device, body.group, body.site)) != 1:
        raise Problem(422, "invalid", "name exactly one of device, group and site")
    rows = AssignmentRows(sql, who.tenant)
    if body.device is not None:
        mac = canonical_mac(body.device)
        if mac is None or not await rows.has_device(mac):
            raise not_found("device")
        return "device", mac_number(mac)
    if body.group is not None:
        if not await rows.has_group(body.group):
            raise not_found("group")
        return "group", body.group
    return "site", 0
