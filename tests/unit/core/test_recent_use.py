import math

import pytest

from fleet.core import recent_use
from fleet.core.recent_use import MEAN_SECONDS, RecentUse


def test_use_fades() -> None:
    use = RecentUse()
    use.add("a", 2.0, 0.0)
    use.add("a", 1.0, MEAN_SECONDS)
    assert use.amount("a", MEAN_SECONDS) == pytest.approx(2 / math.e + 1)
    assert use.amount("a", 100 * MEAN_SECONDS) == pytest.approx(0.0)
    assert use.amount("b", 0.0) == 0.0


def test_who_used_something_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_use, "MOST_KEYS", 2)
    use = RecentUse()
    for key in "abac":
        use.add(key, 1.0, 0.0)
    assert [use.amount(key, 0.0) for key in "abc"] == [2.0, 0.0, 1.0]
