"""What a check is. Ids and sentences are those of section 9 of the device contract."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from fleet.workbench.conformance.context import CheckContext

Run = Callable[[CheckContext], Awaitable[str]]
"""Judges a server; returns what was seen.

Raises:
    Failed: The server does not do what it must.
    NotApplicable: This server, device or setup cannot be judged so.
"""

DEFAULT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    """One statement about a server.

    `profiles` are those that it applies to (None: all), `steered` says that it needs the scripted models, `alone` that
    no other check may run beside it, `seconds` is its limit.
    """

    id: str
    title: str
    run: Run
    profiles: frozenset[str] | None = None
    steered: bool = False
    alone: bool = False
    seconds: float = DEFAULT_SECONDS

    @property
    def letter(self) -> str:
        return self.id.rstrip("0123456789")

    @property
    def number(self) -> int:
        return int(self.id.removeprefix(self.letter))

    def applies(self, profile: str) -> bool:
        return self.profiles is None or profile in self.profiles


@dataclass(slots=True)
class Group:
    """The checks of one letter."""

    letter: str
    title: str
    checks: list[Check] = field(default_factory=list)

    def check(
        self,
        id_: str,
        title: str,
        *,
        profiles: str = "",
        steered: bool = False,
        alone: bool = False,
        seconds: float = DEFAULT_SECONDS,
    ) -> Callable[[Run], Run]:
        """Add the decorated function; `profiles` are names with spaces between, all without it."""

        def add(run: Run) -> Run:
            named = frozenset(profiles.split()) or None
            self.checks.append(Check(id_, title, run, named, steered, alone, seconds))
            return run

        return add
