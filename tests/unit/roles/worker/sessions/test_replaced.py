import asyncio

import pytest

from fleet.roles.worker.sessions import replaced
from fleet.roles.worker.sessions.replaced import ReplacedSessions


async def test_a_replaced_session_is_known_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaced, "MEMORY_SECONDS", 0.0)
    memory = ReplacedSessions()
    memory.note("m", "first")
    assert memory.contains("m", "first")
    assert not memory.contains("m", "second") and not memory.contains("other", "first")
    async with asyncio.timeout(5):
        while memory.contains("m", "first"):
            await asyncio.sleep(0)


async def test_the_newest_of_three_is_not_forgotten_with_the_first() -> None:
    memory = ReplacedSessions()
    memory.note("m", "first")
    memory.note("m", "second")
    memory._forget("m", "first")
    assert memory.contains("m", "second")
