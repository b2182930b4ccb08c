"""What a kind of job does with its devices, as the leader of control asks for it.

The leader chooses devices, and writes into SQL that they are `sent` before it calls `start`. Killed in between, the
next leader calls `start` again with the same attempts: a task does nothing twice for one attempt.
"""

from collections.abc import Sequence
from typing import Protocol

from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.core.job_kinds.terms import JobTerms


class JobTask(Protocol):
    """What one job does with its devices. A kind implements `start` and `review`, and what else it needs."""

    terms: JobTerms

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Let some devices do it, at most 500; return what is known at once.

        Devices without an end stay `sent` until an outcome or evidence comes.
        """
        ...

    async def review(self, sent: Sequence[SentCall], *, overdue: bool) -> Sequence[CallEnd]:
        """Return what became of executions that are `sent`.

        Args:
            sent: The executions.
            overdue: Whether their outcome should have come long ago: each gets an end. Otherwise Redis has lost its
                data, and only those get an end that were lost with it.
        """
        ...

    def judge(self, end: CallEnd, now: int) -> CallEnd:
        """Return what the outcome of a call means: itself, or `verifying` until a time if evidence is to come."""
        return end

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        """Return what an event of `terms.evidence` shows of an execution under way; None if nothing.

        An end that is `verifying` again keeps its text as a note for the next event.
        """
        return None

    def give_up(self, one: Watched) -> CallEnd:
        """Return the end of an execution whose evidence did not come in time."""
        return CallEnd(one.job, one.mac, one.attempt, "unknown", self.terms.silence)

    async def release(self, ends: Sequence[CallEnd]) -> None:
        """Take back what devices were given for these executions, which are about to leave `sent` and `verifying`."""
        return

    async def recall(self, watched: Sequence[Watched]) -> Sequence[CallEnd]:
        """Take back what devices have not begun, as the job has halted or is stopped; they wait again, or end.

        Called again and again while executions are under way, if `terms.recalled`.
        """
        return ()


class OutcomeSource(Protocol):
    """Where outcomes of executions arrive that travel another way than events."""

    async def read(self, now: int) -> Sequence[CallEnd]:
        """Return the oldest outcomes; the same ones until they are forgotten."""
        ...

    async def forget(self) -> None:
        """Remove what was read last: it is stored now."""
        ...
