"""Whether the receipts of an announcement are what the devices heard and saw."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from fleet.workbench.bench.job_verdict import Result

_NOTHING: Final = frozenset({(0, 0)})
_FITTING: Final[Mapping[str, Set[tuple[int, int]]]] = {
    "notify: played": frozenset({(1, 0)}),
    "notify: taken": frozenset({(1, 0), (0, 0)}),
    "alert: shown": frozenset({(0, 1)}),
    "alert: sent": frozenset({(0, 1), (0, 0)}),
}
"""How many clips a device has played and how many alerts it has shown, by its receipt."""
_MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class AnnouncementVerdict:
    """How the receipts agree with the devices; `wrong` has a few that do not, in words."""

    devices: int
    receipts: Mapping[str, int]
    """Counts; of a device without a receipt the state."""
    played: int
    """Devices that played the clip to its end."""
    shown: int
    """Devices that showed the text."""
    twice: int
    """Devices that were told more than once."""
    differing: int
    """Devices whose receipt says another thing than what they did."""
    wrong: Sequence[str]


def judge_receipts(
    results: Sequence[Result], notices: Mapping[str, Sequence[str]], alerts: Mapping[str, int]
) -> AnnouncementVerdict:
    """Compare the results with the clips that devices played, and the alerts that they showed."""
    told = {mac: (len(notices.get(mac, ())), alerts.get(mac, 0)) for mac in {*notices, *alerts}}
    known = {one.device for one in results}
    differing = [one for one in results if told.get(one.device, (0, 0)) not in _FITTING.get(one.text, _NOTHING)]
    strangers = sorted(mac for mac in told if mac not in known)
    words = [f"{one.device}: {one.state} {one.text}, but {told.get(one.device)}" for one in differing]
    return AnnouncementVerdict(
        devices=len(results),
        receipts=dict(Counter(one.text if one.state == "ok" else one.state for one in results)),
        played=sum(played > 0 for played, _ in told.values()),
        shown=sum(shown > 0 for _, shown in told.values()),
        twice=sum(played + shown > 1 for played, shown in told.values()),
        differing=len(differing) + len(strangers),
        wrong=[*words, *(f"{mac} has no part in it" for mac in strangers)][:_MOST_WORDS],
    )
