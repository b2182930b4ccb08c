"""What a change of an assignment would do: which devices get another agent, and why the others keep theirs."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, String, and_, case, false, literal, or_, true

from fleet.adapters.sql.assignment_rows import AssignmentRow, AssignmentRows
from fleet.adapters.sql.assignment_rules import GroupRule, group_rules, members_of, own_agent
from fleet.adapters.sql.database import Database
from fleet.adapters.sql.group_rows import GroupRows
from fleet.adapters.sql.job_targets import JobTarget, JobTargets
from fleet.adapters.sql.schema import DEVICE
from fleet.adapters.sql.text_conditions import Clause

OWN: Final = "it has an agent of its own"
OF_GROUP: Final = "one of its groups has an agent"
NEARER: Final = "another of its groups goes before"
SAME: Final = "its agent stays the same"


class AssignmentEffects:
    """Finds the devices of one tenant that an assignment concerns, as the targets of a job are found.

    Args:
        database: The registry.
        tenant: Whose.
    """

    def __init__(self, database: Database, tenant: int) -> None:
        self._database, self._tenant = database, tenant

    async def targets(self, wanted: AssignmentRow, *, removed: bool = False) -> JobTargets:
        """Return the devices of an assignment; those that keep their agent are skipped, by the reason.

        Args:
            wanted: What is to be assigned. Its device or group is one of the tenant.
            removed: Whether the assignment is taken away instead, whatever its agent is.

        Raises:
            Unavailable: The database does not answer.
        """
        before = await group_rules(self._database, self._tenant)
        own, after = own_agent(self._tenant), before
        given = None if removed else str(wanted.agent)
        found = await AssignmentRows(self._database, self._tenant).read("site", 0)
        site = str(found.agent) if found else ""
        concerned: Clause = true()
        if wanted.scope == "group":
            concerned, after = await self._with_group(before, wanted, removed=removed)
        elif wanted.scope == "device":
            concerned = DEVICE.c.mac == wanted.ref
        future = _agent(
            literal(given, String) if wanted.scope == "device" else own,
            after,
            (given or "") if wanted.scope == "site" else site,
        )
        same = _agent(own, before, site) == future
        skips: dict[str, Clause] = {}
        if wanted.scope == "group":
            place = GroupRule(wanted.ref, wanted.agent, wanted.rank, concerned).place
            nearer = [one.members for one in before if one.group != wanted.ref and one.place < place]
            # With another rank, a device may get the agent of another group.
            skips = {OWN: own.is_not(None), NEARER: and_(same, or_(false(), *nearer))}
        elif wanted.scope == "site":
            skips = {OWN: own.is_not(None), OF_GROUP: or_(false(), *(one.members for one in before))}
        target = JobTarget(self._tenant, concerned, skips={**skips, SAME: same}, revoked=True)
        return JobTargets(self._database, target)

    async def _with_group(
        self, before: Sequence[GroupRule], wanted: AssignmentRow, *, removed: bool
    ) -> tuple[Clause, Sequence[GroupRule]]:
        """Return the members of the group that the assignment names, and the rules after it."""
        row = await GroupRows(self._database, self._tenant).read(wanted.ref)
        members = members_of(self._database, self._tenant, wanted.ref, row.query if row else "")
        others = [one for one in before if one.group != wanted.ref]
        if members is None:
            return false(), others
        new = [] if removed else [GroupRule(wanted.ref, wanted.agent, wanted.rank, members)]
        return members, sorted([*others, *new], key=lambda one: one.place)


def _agent(own: ColumnElement[Any], rules: Sequence[GroupRule], site: str) -> ColumnElement[str]:
    """Return the agent that counts for a device, as text."""
    groups = [(rule.members, literal(str(rule.agent))) for rule in rules]
    return case((own.is_not(None), own), *groups, else_=literal(site))
