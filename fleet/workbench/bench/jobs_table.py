"""Figures of `scripts/bench jobs`, for people."""

from rich.console import Console
from rich.table import Table

from fleet.workbench.bench.jobs import AT_REST, JobResult, JobsFigures

CPU_US, SLOWER, HALT_SECONDS = 250.0, 1.1, 2.0
"""Marks: CPU of control and Redis an execution, turns beside a job against turns without, and the halt of a canary."""


def show_jobs(console: Console, found: JobsFigures) -> None:
    """Print what was measured."""
    console.print(
        f"{found.devices} devices, {found.online} connected, known after {found.boot_seconds:.0f} s; "
        f"a job begins after {found.create_seconds:.2f} s"
    )
    if found.control_idle > AT_REST:
        console.print(
            f"control still used {found.control_idle:.0%} of a core for the boots when the jobs began. That is "
            "subtracted, so its figures are too low"
        )
    if len(found.broker_files) > 1:
        console.print(
            f"{len(found.broker_files) - 1} brokers of the devices, bridged to that of the workers, have "
            f"{', '.join(map(str, found.broker_files[1:]))} open files; CPU and memory of all are summed"
        )
    table = Table()
    for name in (
        "job",
        "rate",
        "control + Redis",
        *found.alone.cpu_us,
        "told",
        "twice",
        "unsure",
        "differing",
        "states",
    ):
        table.add_column(name)
    for name, one in (("alone", found.alone), ("beside turns", found.beside)):
        table.add_row(name, *_cells(one))
    console.print(table)
    console.print(
        f"turns without a job: p50 {found.quiet_ms.p50:.1f} ms, p99 {found.quiet_ms.p99:.1f} ms; beside jobs: "
        f"p50 {found.beside.talk_ms.p50:.1f} ms, p99 {found.beside.talk_ms.p99:.1f} ms"
    )
    for name, one in (("alone", found.alone), ("beside turns", found.beside)):
        before, most = (f"{size / 2**20:.1f}" for size in one.redis_bytes)
        memory = ", ".join(f"{part} {size / 2**20:.0f}" for part, size in one.memory.items())
        console.print(f"{name}: Redis kept {before} MiB, then at most {most}; MiB of processes at the end: {memory}")
    halt = found.halt
    console.print(f"canary: {halt.touched} devices touched, halted after {halt.seconds:.1f} s ({halt.reason})")
    for words in (*found.alone.verdict.wrong, *found.beside.verdict.wrong):
        console.print(f"  {words}", highlight=False, markup=False)


def _cells(one: JobResult) -> list[str]:
    states = ", ".join(f"{count} {state}" for state, count in one.verdict.states.items())
    both = one.cpu_us["control"] + one.cpu_us["redis"]
    figures = [f"{one.rate:.0f}/s", f"{both:.0f} us", *(f"{us:.0f}" for us in one.cpu_us.values())]
    return [
        *figures,
        str(one.verdict.told),
        str(one.verdict.twice),
        str(one.verdict.unsure),
        str(one.verdict.differing),
        states,
    ]
