"""`python -m tests.chaos`: see docs/chaos.md."""

import argparse
import asyncio
import secrets
import sys
import tempfile
import time
from pathlib import Path

import uvloop
from rich.console import Console

from tests.chaos.house import House
from tests.chaos.monkey import Monkey
from tests.chaos.plan import draw
from tests.chaos.report import show, show_plan
from tests.chaos.run import Options, run
from tests.chaos.scenario import SCENARIOS


def main() -> int:
    """Hold a run or a scenario; return the exit code."""
    given = _parse()
    out = given.out or Path(tempfile.mkdtemp(prefix="fleet-chaos-"))
    options = Options(
        out=out,
        seed=given.seed if given.seed is not None else secrets.randbelow(10**6),
        turns=given.turns,
        faults=given.faults,
        devices=given.devices,
        limit=given.limit,
        reconnect=given.reconnect,
        appendfsync=given.appendfsync,
    )
    console = Console()
    console.print(f"logs: {out}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if given.scenario:
            return runner.run(SCENARIOS[given.scenario](options, given.repeat, console))
        show_plan(draw(options.seed, options.faults, options.turns), options.seed, console)
        outcome = runner.run(run(options, Progress(options, console).watch))
    show(outcome, console)
    console.print(f"seed {options.seed}; logs: {out}")
    return 1 if outcome.violations else 0


class Progress:
    """A running count; one line that changes on a terminal, a line every ten seconds elsewhere."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._began = time.monotonic()

    def watch(self, house: House, monkey: Monkey) -> None:
        self._tell(house, monkey)

    def _tell(self, house: House, monkey: Monkey) -> None:
        live = self._console.is_terminal
        answered = sum(turn.outcome == "answered" for turn in house.turns)
        bad = len(house.violations) + sum(turn.outcome in ("unanswered", "dismissed") for turn in house.turns)
        words = (
            f"{time.monotonic() - self._began:4.0f} s  turns {house.over}/{self._options.turns} ({answered} answered)  "
            f"faults {monkey.struck}/{self._options.faults}  violations {bad}"
        )
        self._console.print(words, end="\r" if live else "\n", highlight=False)
        asyncio.get_running_loop().call_later(1.0 if live else 10.0, self._tell, house, monkey)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/chaos", description="Kills anything at any moment; see docs/chaos.md."
    )
    parser.add_argument("--turns", type=int, default=1000, help="turns to hold, with a tool call each (1000)")
    parser.add_argument("--faults", type=int, default=100, help="faults meanwhile (100)")
    parser.add_argument("--seed", type=int, help="repeats a plan of faults; random without it")
    parser.add_argument("--devices", type=int, default=12, help="devices that talk at once (12)")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a turn after the last fault (30)")
    parser.add_argument(
        "--reconnect", type=float, default=1.0, help="seconds to a reconnection (1; stock firmware: 10)"
    )
    parser.add_argument("--appendfsync", choices=["always", "everysec"], default="always", help="of Redis (always)")
    parser.add_argument("--out", type=Path, help="folder for all logs; a temporary one without it")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="instead of a run")
    parser.add_argument(
        "--repeat", type=int, default=20, help="how often the scenario; of jobs: each kind of kill (20)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
