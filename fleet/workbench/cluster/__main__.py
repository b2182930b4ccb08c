"""`python -m fleet.workbench.cluster`: the commands of scripts/cluster."""

import asyncio
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fleet.ground import runtime
from fleet.ground.errors import ConfigError, writing
from fleet.ground.settings import Settings
from fleet.workbench.cluster.caller_settings import caller_settings
from fleet.workbench.cluster.check import models as scripted
from fleet.workbench.cluster.check.judge import Verdict
from fleet.workbench.cluster.check.run import CheckOptions
from fleet.workbench.cluster.check.run import check as run_check
from fleet.workbench.cluster.cluster import Restart, run_cluster
from fleet.workbench.cluster.control import control_path, is_running, request_restart, run_control_server
from fleet.workbench.cluster.options import ROLES, ClusterOptions, Role, process_counts
from fleet.workbench.cluster.tables import show_addresses, show_verdict
from fleet.workbench.local_servers.ports import LOOPBACK

_DEFAULT_DATA = Path(Settings.model_fields["data_dir"].default) / "cluster"

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)

Data = Annotated[Path, typer.Option(help="Folder for keys, data, settings and logs.")]
Workers = Annotated[int, typer.Option(min=1, max=16, help="Worker processes.")]
Edges = Annotated[int, typer.Option(min=1, max=16, help="Edge processes.")]


@app.command()
def up(  # noqa: PLR0913 - the arguments are the command line
    workers: Workers = 2,
    edges: Edges = 2,
    gateways: Annotated[int, typer.Option(min=1, max=16, help="Gateway processes.")] = 1,
    apis: Annotated[int, typer.Option(min=1, max=16, help="Api processes.")] = 1,
    llm: Annotated[str | None, typer.Option(help="Chat endpoint; default: the demo model. [LLM_BASE_URL]")] = None,
    any_ports: Annotated[
        bool, typer.Option("--any-ports", help="Use any free ports, even if the default ports are free.")
    ] = False,
    data: Data = _DEFAULT_DATA,
) -> None:
    """Run each role as a separate process until Ctrl-C, with the caller's settings of models and conversations."""

    async def main() -> int:
        if await is_running(data):
            raise ConfigError(f"a cluster runs in {data} already")
        settings, counts = caller_settings(llm), process_counts(workers, edges, gateways, apis)
        demo_model = "llm_base_url" not in settings
        options = ClusterOptions(data, counts, settings, demo_model, default_ports=not any_ports)
        control_path(data)
        async with run_cluster(options, _say) as cluster, run_control_server(cluster):
            show_addresses(Console(), cluster)
            _say("it is up; Ctrl-C stops it, `scripts/cluster restart` replaces its processes")
            await asyncio.Event().wait()
        return 0

    sys.exit(runtime.run(main))


@app.command()
def restart(
    roles: Annotated[list[str] | None, typer.Argument(help=f"Any of {', '.join(ROLES)}; default: all.")] = None,
    data: Data = _DEFAULT_DATA,
) -> None:
    """Replace the processes of the running cluster, one after the other."""

    def report(one: Restart) -> None:
        _say(f"{one.name}: ready after {one.ready:.1f} s, the old process ended {one.drain:.1f} s later")

    sys.exit(runtime.run(lambda: request_restart(data, _roles(roles), report)))


@app.command()
def check(  # noqa: PLR0913 - the arguments are the command line
    conversations: Annotated[int, typer.Option(min=1, max=150, help="Devices that talk at the same time.")] = 50,
    clients: Annotated[int, typer.Option(min=1, max=50, help="Clients of the gateway at the same time.")] = 4,
    seconds: Annotated[
        float, typer.Option(min=0, max=600, help="Seconds of talk before, between and after restarts.")
    ] = 3.0,
    workers: Workers = 2,
    edges: Edges = 2,
    seed: Annotated[int, typer.Option(help="Seed of the users' random choices.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the verdict.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for all logs; default: a temporary folder.")] = None,
) -> None:
    """Replace every process while devices talk. Exit code 1: something was lost."""

    async def main() -> int:
        folder = out or Path(tempfile.mkdtemp(prefix="fleet-cluster-"))
        _say(f"logs in {folder}")
        verdict = await run_check(CheckOptions(folder, conversations, clients, workers, edges, seconds, seed), _say)
        show_verdict(Console(), verdict)
        if json_file:
            _write(json_file, verdict)
        return 0 if verdict.ok else runtime.EXIT_FAILED

    sys.exit(runtime.run(main))


@app.command(hidden=True)
def models(port: int) -> None:
    """Serve the scripted models of a check."""
    sys.exit(runtime.run(lambda: scripted.serve(LOOPBACK, port)))


def _roles(names: list[str] | None) -> list[Role]:
    wanted = names or list(ROLES)
    if unknown := [name for name in wanted if name not in ROLES]:
        raise typer.BadParameter(f"no such role: {', '.join(unknown)}; roles are {', '.join(ROLES)}")
    return [role for role in ROLES if role in wanted]


def _write(path: Path, verdict: Verdict) -> None:
    document = {"ok": verdict.ok, **dataclasses.asdict(verdict)}
    with writing(path):
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _say(text: str) -> None:
    typer.echo(text, err=True)


if __name__ == "__main__":
    app()
