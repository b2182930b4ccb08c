"""One test over many cases that fails with every case that is wrong.

To set up, run and report one test costs about ten milliseconds of a core, and every process of a run collects it again.
Rules over hundreds of files or rows, each a fraction of a millisecond, are therefore one test each.
"""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_MOST_SHOWN = 40
_LONGEST = 200

Cases = Iterable[Any] | Callable[[], Iterable[Any]]


def for_every(names: str, cases: Cases) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test once for each case, as `pytest.mark.parametrize` does, but as one test.

    Only for tests that change nothing: all cases share their fixtures.

    Args:
        names: The test's arguments that a case gives, with commas between them.
        cases: The values (tuples where there are several names), one at least; or a function that makes them
            when the test runs, for large ones.
    """
    wanted = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            wrong, tried = [], 0
            for case in cases() if callable(cases) else cases:
                tried += 1
                given = dict(zip(wanted, case if len(wanted) > 1 else (case,), strict=True))
                try:
                    test(**fixtures, **given)
                except (AssertionError, pytest.fail.Exception) as error:
                    wrong.append(f"{_named(given)}: {error}")
            assert tried, "there is no case"
            if wrong:
                pytest.fail("\n".join([f"{len(wrong)} of {tried} are wrong", *wrong[:_MOST_SHOWN]]), pytrace=False)

        signature = inspect.signature(test)
        left = [one for name, one in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _named(given: dict[str, Any]) -> str:
    return ", ".join(str(value)[:_LONGEST] for value in given.values())
