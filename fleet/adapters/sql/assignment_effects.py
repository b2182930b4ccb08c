"""What a change of an assignment or a group would do: who gets another agent, and why the others keep theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, String, and_, false, literal, not_, or_, true

from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows
from fleet.adapters.sql.assignment_rules import GroupRule, agent_by, group_rules, is_named, members_of, own_agent
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.group_rows import GroupRow, GroupRows
from fleet.adapters.sql.job_targets import JobTarget, JobTargets
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.text_conditions import Clause

OWN: Final = "it has an agent of its own"
OF_GROUP: Final = "one of its groups has an agent"
NEARER: Final = "another of its groups goes before"
SAME: Final = "its agent stays the same"


@dataclass(frozen=True, slots=True)
class MemberTrial:
    """How a group would change: by the query of a dynamic one, or by MACs of a static one; else it is deleted."""

    query: str = ""
    added: Sequence[str] = ()
    removed: Sequence[str] = ()


class AssignmentEffects:
    """Finds the devices of one tenant that a change concerns, as the targets of a job are found.

    Args:
        database: The registry.
        tenant: Whose.
    """

    def __init__(self, database: Database, tenant: int) -> None:
        self._database, self._tenant = database, tenant
        self._own = own_agent(tenant)

    async def targets(self, wanted: AssignmentRow, *, removed: bool = False) -> JobTargets:
        """Return the devices of an assignment; those that keep their agent are skipped, by the reason.

        Args:
            wanted: What is to be assigned. Its device or group is one of the tenant.
            removed: Whether the assignment is taken away instead, whatever its agent is.

        Raises:
            Unavailable: The database does not answer.
        """
        before = await group_rules(self._database, self._tenant)
        if wanted.scope == "group":
            row = await GroupRows(self._database, self._tenant).read(wanted.ref)
            members = self._members(wanted.ref, row.query if row else "")
            after = [] if removed or members is None else [_rule(wanted, members)]
            return await self._of_group(wanted, before, after, false() if members is None else members)
        given = None if removed else str(wanted.agent)
        site = await self._site()
        if wanted.scope == "device":
            future = agent_by(literal(given, String), before, site)
            return self._targets(DEVICE.c.mac == wanted.ref, agent_by(self._own, before, site), future, {})
        skips = {OWN: self._own.is_not(None), OF_GROUP: or_(false(), *(one.members for one in before))}
        future = agent_by(self._own, before, given or "")
        return self._targets(true(), agent_by(self._own, before, site), future, skips)

    async def of_members(self, group: GroupRow, trial: MemberTrial) -> JobTargets | None:
        """Return the devices that would join or leave a group, as `targets` does; None if the group has no agent.

        Raises:
            Unavailable: The database does not answer.
        """
        given = await AssignmentRows(self._database, self._tenant).read("group", group.id)
        if trial == MemberTrial() and (targets := await self.of_names(group)) is not None:
            return targets
        if given is None or trial == MemberTrial():
            return None if given is None else await self.targets(given, removed=True)
        rules = await group_rules(self._database, self._tenant)
        found = self._members(group.id, group.query)
        old = false() if found is None else found
        if trial.query:
            later = self._members(group.id, trial.query)
            new = false() if later is None else later
        else:
            named = DEVICE.c.mac.in_([mac_number(mac) for mac in (*trial.added, *trial.removed)])
            new = or_(old, named) if trial.added else and_(old, not_(named))
        concerned = or_(and_(old, not_(new)), and_(new, not_(old)))
        return await self._of_group(given, rules, [_rule(given, new)], concerned)

    async def of_names(self, group: GroupRow, name: str | None = None) -> JobTargets | None:
        """Return the members of a static group that is deleted or gets another name, if others depend on its name.

        If the query of a group with an agent names it, each member may get another agent, and nobody else. Which of
        them do is not known. None if nobody depends on it.

        Raises:
            Unavailable: The database does not answer.
        """
        names = [group.name] if name is None else [group.name, name]
        members = None if group.query else self._members(group.id, "")
        if members is None or not await is_named(self._database, self._tenant, names):
            return None
        return JobTargets(self._database, JobTarget(self._tenant, members, revoked=True))

    async def _of_group(
        self, wanted: AssignmentRow, before: Sequence[GroupRule], new: Sequence[GroupRule], concerned: Clause
    ) -> JobTargets:
        """Return the devices of a change after which these are the rules of a group."""
        site = await self._site()
        others = [one for one in before if one.group != wanted.ref]
        after = sorted([*others, *new], key=lambda one: one.place)
        now, future = agent_by(self._own, before, site), agent_by(self._own, after, site)
        place = _rule(wanted, concerned).place
        nearer = [one.members for one in others if one.place < place]
        # With another rank, a device may get the agent of another group.
        skips = {OWN: self._own.is_not(None), NEARER: and_(now == future, or_(false(), *nearer))}
        return self._targets(concerned, now, future, skips)

    def _targets(
        self, concerned: Clause, now: ColumnElement[str], future: ColumnElement[str], skips: Mapping[str, Clause]
    ) -> JobTargets:
        target = JobTarget(self._tenant, concerned, skips={**skips, SAME: now == future}, revoked=True)
        return JobTargets(self._database, target)

    def _members(self, group: int, query: str) -> Clause | None:
        return members_of(self._database, self._tenant, group, query)

    async def _site(self) -> str:
        found = await AssignmentRows(self._database, self._tenant).read("site", 0)
        return str(found.agent) if found else ""


def _rule(given: AssignmentRow, members: Clause) -> GroupRule:
    return GroupRule(given.ref, given.agent, given.rank, members)
