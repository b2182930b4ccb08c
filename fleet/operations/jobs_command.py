"""`fleet jobs`: do something on many devices, over control."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from fleet.client import jobs
from fleet.client.client import AsyncFleetClient
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.desired_command import patch_of
from fleet.operations.dry_runs import skip_lines
from fleet.operations.inputs import checked, read_pair
from fleet.operations.job_options import read_share, read_stages
from fleet.operations.jobs_table import JobScreen, progress_line
from fleet.operations.json_output import AsJson, AsJsonLines, print_json, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_agent
from fleet.wire.control.jobs import Job, JobRequest
from fleet.wire.job_states import EXECUTION_STATES, ExecutionState

app = typer.Typer(
    help="Jobs over many devices: create, list, show, watch, pause, continue, stop, approve, retry, results, delete.",
    no_args_is_help=True,
)

Id = Annotated[int, typer.Argument(min=1, help="Number of the job.")]
State = Annotated[str, typer.Option(help="Only devices in this state, such as error.")]
_OVER = ("done", "stopped")
_LOOK_SECONDS = 1.0
_FAILED = 1


@app.command()
@operation
async def create(  # noqa: PLR0913 - the arguments are the command line
    settings: Settings,
    name: Annotated[str, typer.Argument(help="A name for people.")],
    query: Annotated[str, typer.Option(help="Which devices, such as tag.site=berlin; '' means all.")],
    tool: Annotated[str, typer.Option(help="The tool that is called.")] = "",
    arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments as name=value.")] = None,
    reboot: Annotated[bool, typer.Option("--reboot", help="Restart the devices, instead of a tool.")] = False,
    collect: Annotated[str, typer.Option(help="Ask for status or system, and keep the answer as an attribute.")] = "",
    shadow: Annotated[bool, typer.Option("--shadow", help="Desire name=value, as devices desired does.")] = False,
    policy_of: Annotated[
        list[str] | None, typer.Option("--keep", metavar="NAME=POLICY", help="With --shadow: volume=enforce.")
    ] = None,
    agent: Annotated[str, typer.Option(help="Name of the agent that the devices get.")] = "",
    rotate: Annotated[str, typer.Option(help="Move the devices to the key with this id, which signs now.")] = "",
    firmware: Annotated[int, typer.Option(min=0, help="Install this image; see `fleet firmware list`.")] = 0,
    how: Annotated[str, typer.Option(help="With --firmware: reboot, next_boot or push.")] = "reboot",
    force: Annotated[bool, typer.Option("--force", help="With --firmware: also where a newer version runs.")] = False,
    assets: Annotated[int, typer.Option(min=0, help="Let devices download this image of assets.")] = 0,
    stages: Annotated[str, typer.Option(help="Shares or numbers of devices, the last is all: 20,10%,100%.")] = "100%",
    soak: Annotated[int, typer.Option(min=0, help="Seconds to watch a stage before the next one.")] = 0,
    approve: Annotated[bool, typer.Option("--approve", help="A person begins each further stage.")] = False,
    rate: Annotated[float, typer.Option(help="Devices a second.")] = 10,
    window: Annotated[int, typer.Option(help="Devices under way at a time.")] = 50,
    halt: Annotated[str, typer.Option(help="Share of failures at which the job halts.")] = "10%",
    sample: Annotated[int, typer.Option(help="Outcomes without which a stage is not judged.")] = 20,
    retries: Annotated[int, typer.Option(help="Of calls that were not sent, or that may be repeated.")] = 0,
    quiet: Annotated[str, typer.Option(help="Hours of the device's day without calls: 22:00-07:00.")] = "",
    any_time: Annotated[bool, typer.Option("--busy", help="Call devices in a session, too.")] = False,
    expires: Annotated[int, typer.Option(help="Seconds after which unreached devices are given up.")] = 604_800,
    continuous: Annotated[bool, typer.Option("--continuous", help="Devices that the query means later join.")] = False,
    starts: Annotated[str, typer.Option(help="When it begins, such as 2026-12-24T02:00+01:00; else at once.")] = "",
    supersedes: Annotated[str, typer.Option(help="A key: older jobs with the same key stop when it begins.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show its progress until it is over.")] = False,
    as_json: AsJson = False,
) -> int:
    """Make a job; it begins at once, or when --starts says. It halts by itself when too many devices fail."""
    shares = read_stages(stages, soak, sample, approve=approve)
    policy = {"stages": shares, "rate": rate, "window": window, "halt_share": read_share(halt), "halt_sample": sample}
    policy |= {"retries": retries, "quiet": quiet, "idle": not any_time, "expires_seconds": expires}
    asked: dict[str, Any] = {"name": name, "query": query, "continuous": continuous, "policy": policy}
    asked |= _given(tool=tool, key=rotate, starts=starts, supersedes=supersedes)
    kinds: dict[str, object] = {"reboot": reboot, "collect": collect, "shadow": shadow, "agent": agent}
    kinds |= {"firmware": firmware and {"image": firmware, "how": how, "force": force}, "rotate_credentials": rotate}
    kinds |= {"assets": assets and {"image": assets}}
    asked |= _work(kinds, arguments or (), policy_of or ())
    return await _make(settings, asked, agent, dry_run=dry_run, watch=watch, as_json=as_json)


@app.command("list")
@operation
async def list_jobs(settings: Settings, as_json: AsJson = False) -> None:
    """List the jobs, the newest first."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(jobs.listing()) for one in page.items]
    if as_json:
        print_json("jobs", found)
        return
    rows = [(one.id, one.name, one.state, f"{one.stage}/{len(one.policy.stages)}", progress_line(one)) for one in found]
    print_list("jobs", ("id", "name", "state", "stage", "devices"), rows, as_json=False)


@app.command()
@operation
async def show(settings: Settings, job: Id, state: State = "", as_json: AsJson = False) -> None:
    """Show a job; with a state, what its devices in this state answered."""
    async with open_control(settings) as control:
        found = await control.send(jobs.read(job))
        call = jobs.executions(job, _execution_state(state) if state else None)
        rows = [one async for page in control.pages(call) for one in page.items] if state else []
    if as_json:
        print_json(
            "jobs", [{**found.model_dump(mode="json"), "executions": [one.model_dump(mode="json") for one in rows]}]
        )
        return
    JobScreen().show(found)
    for one in rows:
        typer.echo(f"{one.device} {one.state} {visible(one.text)}")


@app.command()
@operation
async def watch(settings: Settings, job: Id, as_json: AsJsonLines = False) -> int:
    """Show the progress of a job until it is over, halted or paused. Exit code 1: it is not done, or devices failed."""
    async with open_control(settings) as control:
        return await _watch(control, job, as_json=as_json)


@app.command()
@operation
async def pause(settings: Settings, job: Id, as_json: AsJson = False) -> None:
    """Hand no more devices over."""
    await _steer(settings, job, "pause", as_json=as_json)


@app.command("continue")
@operation
async def resume(settings: Settings, job: Id, as_json: AsJson = False) -> None:
    """Continue a job that was paused or that halted."""
    await _steer(settings, job, "continue", as_json=as_json)


@app.command()
@operation
async def stop(settings: Settings, job: Id, as_json: AsJson = False) -> None:
    """Stop a job; it cannot be continued."""
    await _steer(settings, job, "stop", as_json=as_json)


@app.command()
@operation
async def approve(settings: Settings, job: Id, as_json: AsJson = False) -> None:
    """Let the next stage of a job begin now."""
    async with open_control(settings) as control:
        seen = await control.send(jobs.read(job))
        # Of this stage: two people who approve it at the same time must not let two stages begin.
        found = await control.send(jobs.steer(job, "approve").of_version(seen.version))
    _report(found, as_json=as_json)


@app.command()
@operation
async def retry(
    settings: Settings,
    job: Id,
    states: Annotated[str, typer.Option(help="Of error, timed_out and unknown, separated by commas.")] = "",
    as_json: AsJson = False,
) -> None:
    """Try failed devices again; unknown ones only if the call may be repeated, unless you name them."""
    chosen = [_execution_state(one.strip()) for one in states.split(",") if one.strip()]
    async with open_control(settings) as control:
        found = await control.send(jobs.retry(job, chosen))
    _report(found, as_json=as_json)


@app.command()
@operation
async def delete(
    settings: Settings,
    numbers: Annotated[list[int], typer.Argument(min=1, help="Numbers of jobs that are over.")],
    as_json: AsJson = False,
) -> None:
    """Delete jobs that are over, with what happened on each device."""
    async with open_control(settings) as control:
        gone = [await control.send(jobs.read(number)) for number in numbers]
        for one in gone:
            await control.send(jobs.remove(one.id))
    print_result("jobs", gone, f"{plural(len(gone), 'job')} deleted", as_json=as_json)


@app.command()
@operation
async def results(settings: Settings, job: Id, state: State = "", as_json: AsJson = False) -> None:
    """Print what happened on each device, as CSV."""
    wanted = _execution_state(state) if state else None
    async with open_control(settings) as control:
        if as_json:
            rows = [one async for page in control.pages(jobs.executions(job, wanted)) for one in page.items]
            print_json("executions", rows)
            return
        async for piece in control.download(jobs.results(job), {"state": state} if state else {}):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def _given(**texts: str) -> dict[str, str]:
    return {field: text for field, text in texts.items() if text}


def _begins(job: Job) -> str:
    return "begins" if job.starts is None else f"begins at {job.starts:%Y-%m-%d %H:%M} UTC"


def _work(kinds: Mapping[str, object], arguments: Sequence[str], policies: Sequence[str]) -> dict[str, Any]:
    """Return the kind of a job, and what only that kind has."""
    kind = next((name for name, given in kinds.items() if given), "tool")
    if kind == "shadow":
        return {"kind": kind, "shadow": patch_of(arguments, (), policies) or {}}
    given = dict(read_pair(text) for text in arguments)
    more = {kind: kinds[kind]} if kind in ("collect", "firmware", "assets") else {}
    return {"kind": kind, **more, **({"arguments": given} if given else {})}


async def _make(
    settings: Settings, asked: dict[str, Any], agent: str, *, dry_run: bool, watch: bool, as_json: bool
) -> int:
    async with open_control(settings) as control:
        asked |= {"agent": (await find_agent(control, agent)).id} if agent else {}
        request = checked(JobRequest, asked)
        if dry_run:
            await _preview(control, request, as_json=as_json)
            return 0
        made = await control.send(jobs.create(request))
        if watch:
            return await _watch(control, made.id, as_json=as_json)
    print_result("jobs", [made], f"job {made.id} {_begins(made)}: fleet jobs watch {made.id}", as_json=as_json)
    return 0


async def _preview(control: AsyncFleetClient, request: JobRequest, *, as_json: bool) -> None:
    found = await control.send(jobs.preview(request))
    lines = [f"{plural(found.devices, 'device')}, {found.online} connected"]
    lines += skip_lines(found.skipped)
    print_result("previews", [found], "\n".join(lines), as_json=as_json)


async def _watch(control: AsyncFleetClient, job: int, *, as_json: bool) -> int:
    shown: Job | None = None
    with JobScreen() as screen:
        while True:
            found = await control.send(jobs.read(job))
            if found != shown:
                if as_json:
                    typer.echo(json.dumps(found.model_dump(mode="json")))
                else:
                    screen.show(found)
            shown = found
            if found.state in (*_OVER, "halted", "paused"):
                break
            await asyncio.sleep(_LOOK_SECONDS)
    failed = found.counts.error + found.counts.unknown + found.counts.timed_out + found.counts.expired
    return _FAILED if failed or found.state != "done" else 0


async def _steer(settings: Settings, job: int, verb: Literal["pause", "continue", "stop"], *, as_json: bool) -> None:
    async with open_control(settings) as control:
        found = await control.send(jobs.steer(job, verb))
    _report(found, as_json=as_json)


def _report(job: Job, *, as_json: bool) -> None:
    print_result("jobs", [job], f"job {job.id} is {job.state}", as_json=as_json)


def _execution_state(text: str) -> ExecutionState:
    found = next((one for one in EXECUTION_STATES if one == text), None)
    if found is None:
        raise ConfigError(f"there is no state {visible(text)}; states are {', '.join(EXECUTION_STATES)}")
    return found
