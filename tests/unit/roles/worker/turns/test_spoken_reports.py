"""What the report of an interrupted answer says about whether anything of it was heard."""

from types import SimpleNamespace
from typing import Any

import pytest

from fleet.roles.worker.announcements.pauses import AnswerEnd
from fleet.roles.worker.turns.spoken_reports import UNHEARD_MS, SpokenReports
from fleet.wire.edge_messages import AnswerInterruptedEvent

MAC = "aa:bb:cc:dd:ee:ff"


@pytest.mark.parametrize(
    ("spoken", "spoken_ms", "heard"),
    [(0, 0, 0), (1, UNHEARD_MS - 60, 0), (1, UNHEARD_MS, 1), (2, UNHEARD_MS - 60, 2)],
)
async def test_what_is_cut_at_its_beginning_is_not_heard(spoken: int, spoken_ms: int, heard: int) -> None:
    async def note(*_: Any) -> None:
        """Nothing is noted."""

    answers: Any = SimpleNamespace(note=note)
    shard: Any = SimpleNamespace(owner=None)
    entry: Any = None
    reports = SpokenReports(answers)
    reports.pauses.begin(MAC, "t1")
    cut = AnswerInterruptedEvent(device=MAC, session="s1", turn="t1", spoken=spoken, spoken_ms=spoken_ms)
    await reports.take(shard, entry, cut)
    assert await reports.pauses.outcome(MAC, "t1") == AnswerEnd("cut_short", heard)
