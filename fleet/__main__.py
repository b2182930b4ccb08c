"""`python -m fleet` and the command `fleet`."""

import gc
import os
import sys

from fleet.ground.errors import install_hint

_NEW_OBJECTS = 50_000
"""Threshold of the youngest generation of the garbage collector, until a role sets its own; Python's default is 700."""


def main() -> None:
    if not sys.stdout.isatty():
        # Typer reads it when it is imported: help and errors for pipes have no boxes.
        os.environ.setdefault("TYPER_USE_RICH", "0")  # noqa: TID251 - not a setting of fleet
    # numpy reads it when it is imported. Its matrices are small here, and threads that wait for more of them spin: they
    # took 85 ms of a second core after each spectrogram.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # noqa: TID251 - not a setting of fleet
    # Imports leave hardly any garbage: looking for it again and again took a seventh of a start.
    gc.set_threshold(_NEW_OBJECTS)
    try:
        from fleet import cli
    except ModuleNotFoundError as missing:
        sys.exit(f"fleet: the package {missing.name} is missing: {install_hint('server')}")
    cli.main()


if __name__ == "__main__":
    main()
