"""Runs a benchmark, prints its figures, and writes them into a file as JSON."""

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from fleet.ground import runtime
from fleet.ground.errors import ConfigError
from fleet.workbench.bench.experiment import Experiment, Figures
from fleet.workbench.bench.machine import Machine
from fleet.workbench.bench.udp_table import make_console


def run(
    experiment: Experiment[Figures], show: Callable[[Console, Machine, Figures], None], json_file: Path | None
) -> None:
    """Run a benchmark, then end the process."""

    async def main() -> None:
        console, machine = make_console(), Machine.here()
        with console.status("") as status:
            found = await experiment.measure(status.update)
        show(console, machine, found)
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
    try:
        path.write_text(as_json(document), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return str(value)
