"""`python -m fleet.workbench.sim.crowd PLAN`: one process of a crowd."""

import sys

import typer

from fleet.workbench.sim.crowd.run import read_run, run_crowd


def main() -> int:
    return run_crowd(read_run(sys.argv[1]), typer.echo)


if __name__ == "__main__":
    sys.exit(main())
