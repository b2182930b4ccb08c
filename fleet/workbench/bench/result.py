"""Runs a benchmark, prints its figures, and writes them into a file as JSON."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from fleet.ground import runtime
from fleet.ground.errors import writing
from fleet.ground.terminal import open_console
from fleet.workbench.bench.experiment import Experiment, Figures
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.table_cells import show_machine

_PLAIN_WIDTH = 120
"""Columns of an output that is no terminal."""


def run(experiment: Experiment[Figures], show: Callable[[Console, Figures], None], json_file: Path | None) -> None:
    """Run a benchmark, then end the process."""

    async def main() -> None:
        console, machine = open_console(_PLAIN_WIDTH), Machine.here()
        with console.status("") as status:
            found = await experiment.measure(status.update)
        show_machine(console, machine)
        show(console, found)
        if json_file:
            head = {"benchmark": experiment.name, "machine": machine, "plan": experiment}
            _write(json_file, {**head, **members(found)})

    sys.exit(runtime.run(main))


def members(figures: object) -> dict[str, object]:
    """Return the members of the results for the JSON file: the figures' own names, or `cases` if they are a list."""
    if dataclasses.is_dataclass(figures) and not isinstance(figures, type):
        return dataclasses.asdict(figures)
    return {"cases": figures}


def as_json(document: dict[str, object]) -> str:
    return json.dumps(document, default=_plain, indent=2) + "\n"


def _write(path: Path, document: dict[str, object]) -> None:
    with writing(path):
        path.write_text(as_json(document), encoding="utf-8")


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
