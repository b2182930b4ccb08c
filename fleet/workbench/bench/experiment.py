"""What every benchmark is: parameters, a measurement with them, and figures as the result."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

Figures = TypeVar("Figures")

Progress = Callable[[str], None]
"""Called with what is being measured now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(ABC, Generic[Figures]):
    """A benchmark with its parameters; each kind of window is measured `repeats` times, for `seconds`."""

    name: ClassVar[str]
    """The command of `scripts/bench`."""

    seconds: float
    repeats: int

    @abstractmethod
    async def measure(self, progress: Progress) -> Figures:
        """Run the benchmark.

        Raises:
            ConfigError: A program is missing.
            Unavailable: A process of the benchmark ended, or is not ready in time.
        """
