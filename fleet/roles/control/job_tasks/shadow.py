"""The kind `shadow`: patches desired states, and takes the events about them as evidence."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.desired_rows import DesiredChange, DesiredRows, DesiredState
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.core.desired_state import is_readable
from fleet.core.job_kinds.shadow import CONFIRMED, DRIFT
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_policies import terms_of_job
from fleet.roles.control.job_tasks.task import JobTask

VERIFY_MS: Final = 600_000
"""How long a device may take to confirm."""
WRITTEN: Final = "written; it cannot be read back"
_DECODER: Final = msgspec.json.Decoder(dict[str, Any])


class ShadowTask(JobTask):
    """Changes desired states; the keeper sets the devices.

    Args:
        job: Of the kind `shadow`.
        database: Has the desired states.
    """

    def __init__(self, job: JobRow, database: Database) -> None:
        self.terms = terms_of_job(job)
        self._change: Mapping[str, Any] = job.body["shadow"]
        self._rows = DesiredRows(database, job.tenant)
        desired = self._change.get("desired", {})
        self._wanted = {name: value for name, value in desired.items() if is_readable(name) and value is not None}

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Change the desired states. Repeated for the same attempt, nothing is set anew."""
        by_attempt: dict[int, list[SentCall]] = {}
        for one in sent:
            by_attempt.setdefault(one.attempt, []).append(one)
        ends = []
        for attempt, some in by_attempt.items():
            change = DesiredChange(
                self._change.get("desired", {}), self._change.get("policies", {}), f"job-{some[0].job}-{attempt}"
            )
            now = milliseconds()
            states = await self._rows.change_many([one.mac for one in some], change, now)
            ends += [self._end(one, states.get(one.mac), now) for one in some]
        return ends

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        """Do again what a killed process may not have done; a loss of Redis lost nothing."""
        return await self.start(sent) if overdue else []

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        """Return what an event about the desired state shows: all values confirmed, or one that is not taken."""
        about = _DECODER.decode(event.data).get("properties", {})
        of = one.job, one.mac, one.attempt
        if event.kind == CONFIRMED:
            now = {name for name, value in about.items() if self._wanted.get(name) == value}
            seen = now | {name for name in one.text.split(",") if name}
            return self._confirmed(of, seen, one.place) if now else None
        for name, found in about.items():
            if name in self._wanted and event.kind != DRIFT:
                return CallEnd(*of, "error", f"{name}: {found}")
            if name in self._wanted and found.get("desired") == self._wanted[name]:
                return CallEnd(*of, "error", f"{name}: the device reports {found.get('reported')}")
        return None

    def _end(self, one: SentCall, state: DesiredState | None, now: int) -> CallEnd:
        of = one.job, one.mac, one.attempt
        if state is None:
            return CallEnd(*of, "error", "the registry does not have the device any more")
        if any(name not in state.properties for name in self._wanted):
            return CallEnd(*of, "error", "it would have too many calls of tools")
        seen = {name for name in self._wanted if state.properties[name].state == "confirmed"}
        return self._confirmed(of, seen, now + VERIFY_MS)

    def _confirmed(self, of: tuple[int, int, int], seen: set[str], due: int) -> CallEnd:
        if seen >= self._wanted.keys():
            return CallEnd(*of, "ok", "confirmed" if self._wanted else WRITTEN)
        return CallEnd(*of, "verifying", ",".join(sorted(seen)), due)
