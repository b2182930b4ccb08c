"""The command line of a Python module that runs in a process of its own."""

import sys

RUN_MODULE: tuple[str, ...] = (sys.executable, "-m")
"""Runs the module that is named next, with this Python."""


def module_command(module: str, *words: str) -> list[str]:
    """Return the command line of a module with these arguments."""
    return [*RUN_MODULE, module, *words]
