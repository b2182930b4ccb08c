"""The Docker engine of the tests in this folder."""

from typing import Any

import docker  # type: ignore[import-untyped]  # has no types

ANSWER_SECONDS = 600
"""For one answer: an engine without a processor of its own needs minutes to remove what a whole machine wrote."""


def connect() -> Any:
    """Return a client of the engine that the environment names."""
    return docker.from_env(timeout=ANSWER_SECONDS)
