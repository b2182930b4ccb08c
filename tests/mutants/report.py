"""What came out of a campaign."""

import json
from collections import Counter
from dataclasses import dataclass

from tests.mutants.mutant import ROOMS, Mutant

KILLED, SURVIVED, TIMEOUT = "killed", "survived", "timeout"
WANTED = 0.9
"""The share of mutants that the tests must notice. A run that takes too long is noticed too."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutant; `killer` is the test that failed first, or why there was none."""

    mutant: Mutant
    outcome: str
    killer: str
    seconds: float


def report(results: list[Result], accepted: dict[str, str]) -> tuple[str, bool]:
    """Return the table with the survivors, and whether the tests are good enough.

    `accepted` has the reason for each survivor that may be one, by the mutant's name.
    """
    noticed = {result.mutant.name for result in results if result.outcome != SURVIVED}
    outcomes = (KILLED, TIMEOUT, SURVIVED)
    rooms = [room for room in ROOMS if any(result.mutant.room == room for result in results)]
    rooms += sorted({result.mutant.room for result in results} - set(rooms))
    lines = [f"{'room':24}{'mutants':>9}" + "".join(f"{outcome:>10}" for outcome in outcomes) + f"{'share':>8}"]
    for room in (*rooms, "all"):
        counts = Counter(result.outcome for result in results if room in ("all", result.mutant.room))
        numbers = "".join(f"{counts[outcome]:10}" for outcome in outcomes)
        lines.append(f"{room:24}{counts.total():9}{numbers}{_share(counts):8.1%}")
    survivors = {result.mutant.name: result for result in results if result.outcome == SURVIVED}
    for name, result in survivors.items():
        lines.append(f"\n{result.mutant.path}:{result.mutant.first} {accepted.get(name, '')}".rstrip())
        if name not in accepted:
            lines.append(f'[[survivor]]\nmutant = {json.dumps(name, ensure_ascii=False)}\nreason = "{result.killer}"')
    lines += [f"\non the list, but noticed: {name}" for name in accepted if name in noticed]
    unknown = len(survivors.keys() - accepted.keys())
    share = _share(Counter(result.outcome for result in results))
    lines.append(f"\n{share:.1%} noticed ({WANTED:.0%} wanted), {unknown} survivors are not on the list")
    return "\n".join(lines), share >= WANTED and not unknown


def _share(counts: Counter[str]) -> float:
    return 1 - counts[SURVIVED] / max(counts.total(), 1)
