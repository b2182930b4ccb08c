"""Shows a job: its progress as a table that is drawn again and again, or line by line where there is no terminal."""

from types import TracebackType

import typer
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from fleet.ground.terminal import cell, open_console, visible
from fleet.wire.control.jobs import Job
from fleet.wire.job_states import EXECUTION_STATES, OPEN_STATES

_BAR = 40


class JobScreen:
    """Shows the newest state of a job during the block."""

    def __init__(self) -> None:
        self._console = open_console()
        self._live: Live | None = None

    def __enter__(self) -> "JobScreen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, job: Job) -> None:
        """Show a state."""
        if not self._console.is_terminal:
            about = f" ({visible(job.reason)})" if job.reason else ""
            typer.echo(f"{job.state}{about}, stage {job.stage}/{len(job.policy.stages)}: {progress_line(job)}")
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(table_of(job), refresh=True)


def progress_line(job: Job) -> str:
    """Return how many devices are in each state that has some."""
    counts = job.counts.model_dump()
    found = [f"{counts[state]} {state.replace('_', ' ')}" for state in EXECUTION_STATES if counts[state]]
    return ", ".join(found) or "no device"


def table_of(job: Job) -> Table:
    """Return a job as a table."""
    counts = job.counts.model_dump()
    ended = job.devices - sum(counts[state] for state in OPEN_STATES)
    table = Table(show_header=False, box=None)
    state = f"{job.state}: {job.reason}" if job.reason else job.state
    table.add_row(cell(f"job {job.id}"), cell(job.name))
    table.add_row("state", cell(state))
    table.add_row("stage", f"{job.stage} of {len(job.policy.stages)}")
    share = f", {100 * ended // job.devices} %" if job.devices else ""
    table.add_row("devices", f"{ended} of {job.devices}{share}")
    table.add_row("", ProgressBar(total=max(1, job.devices), completed=ended, width=_BAR))
    for name in EXECUTION_STATES:
        if counts[name]:
            table.add_row(name.replace("_", " "), str(counts[name]))
    return table
