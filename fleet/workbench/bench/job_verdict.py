"""Whether the results of a job are what the devices did: nothing lost, nothing twice, nothing invented."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fleet.wire.job_states import ExecutionState

Call = tuple[str, str, str]
"""Tool, arguments as JSON, and fate of a call, as `Ledger.document` has them."""
FITTING: Mapping[str, frozenset[str]] = {"ok": frozenset({"ok"}), "error": frozenset({"error"})}
"""Fates that go with a state; nothing is known of what is `unknown`, and nobody was told otherwise."""


@dataclass(frozen=True, slots=True)
class Result:
    """What control says of a device."""

    device: str
    state: ExecutionState
    attempts: int
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the results agree with the devices; `wrong` has a few that do not, in words."""

    devices: int
    states: Mapping[str, int]
    told: int
    """Calls that came to devices."""
    twice: int
    """Devices that were told more often than there were attempts."""
    unsure: int
    """Devices that answered though nobody knows it: their connection, a worker or Redis was lost meanwhile."""
    differing: int
    """Devices whose state does not go with what they did."""
    wrong: Sequence[str]


def judge(results: Sequence[Result], calls: Mapping[str, Sequence[Call]], tool: str, arguments: str) -> Verdict:
    """Compare the results of a job with the calls of its tool with its arguments."""
    told = {mac: [one[2] for one in some if (one[0], one[1]) == (tool, arguments)] for mac, some in calls.items()}
    twice = [one for one in results if len(told.get(one.device, ())) > one.attempts]
    differing = [one for one in results if not _fits(one, told.get(one.device, ()))]
    strangers = {mac for mac, some in told.items() if some} - {one.device for one in results}
    words = [f"{one} was told {told.get(one.device, ())}" for one in _few(twice, differing)]
    return Verdict(
        devices=len(results),
        states=dict(Counter(one.state for one in results)),
        told=sum(map(len, told.values())),
        twice=len(twice) + len(strangers),
        unsure=sum(
            one.state == "unknown" and told.get(one.device, [""])[-1:] in (["ok"], ["error"]) for one in results
        ),
        differing=len(differing),
        wrong=[*words, *(f"{mac} has no part in the job" for mac in sorted(strangers)[:5])],
    )


def _fits(result: Result, fates: Sequence[str]) -> bool:
    if result.state in FITTING:
        return bool(FITTING[result.state] & set(fates[-1:]))
    return result.state == "unknown" or not fates


def _few(*lists: Sequence[Result]) -> Iterator[Result]:
    for some in lists:
        yield from some[:5]
