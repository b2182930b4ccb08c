"""The command line of a Python module that runs in a process of its own."""

import sys

through: list[str] = []
"""A module that runs the other ones; tests name one that lets them wait longer for each other."""


def module_command(module: str, *words: str) -> list[str]:
    """Return the command line of a module with these arguments."""
    return [sys.executable, "-m", *through, module, *words]
