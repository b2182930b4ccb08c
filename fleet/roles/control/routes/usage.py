"""`/v1/usage`: turns, tokens and seconds of speech."""

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, get_args

from fastapi import Query

from fleet.adapters.sql.usage_rows import MOST_USAGE_ROWS, Part, UsageRows
from fleet.core.permissions import USAGE_READ
from fleet.roles.control.access import Who
from fleet.roles.control.device_queries import read_mac
from fleet.roles.control.problems import Problem
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.shapes import GivenDay
from fleet.wire.control.usage import Usage, UsageList

_USUAL_DAYS = 30
_FIRST = date(1970, 1, 1)


class UsageRoutes:
    """Usage of the caller's tenant."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services = services
        routes.add("GET /usage", self.read, USAGE_READ)

    async def read(
        self,
        who: Who,
        by: Annotated[str, Query(max_length=60)] = "day",
        since: GivenDay | None = None,
        until: GivenDay | None = None,
        device: Annotated[str, Query(max_length=40)] = "",
        agent: Annotated[str | None, Query(max_length=63)] = None,
    ) -> UsageList:
        """Return sums over some days in UTC, by default the last 30.

        `by`: any of `day`, `device`, `agent`, separated by commas; empty for one sum. `until` is the last day.
        """
        parts = _parts(by)
        last = until or datetime.now(UTC).date()
        first = since or last - timedelta(days=_USUAL_DAYS - 1)
        rows = UsageRows(self._services.database, who.tenant)
        mac = read_mac(device) if device else ""
        found = await rows.sums(parts, (first - _FIRST).days, (last - _FIRST).days, mac=mac, agent=agent)
        return UsageList(items=[_shape(row) for row in found], truncated=len(found) == MOST_USAGE_ROWS)


def _parts(text: str) -> list[Part]:
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    parts: list[Part] = [part for part in get_args(Part) if part in wanted]
    if len(parts) != len(wanted):
        raise Problem(400, "bad-by", f"usage can be told by {', '.join(get_args(Part))}")
    return parts


def _shape(row: dict[str, Any]) -> Usage:
    if "day" in row:
        row = {**row, "day": _FIRST + timedelta(days=row["day"])}
    return Usage(**row)
