"""What a turn takes of the texts that were kept, and how long it waits for them."""

import asyncio
from datetime import UTC, datetime, tzinfo

import pytest

from fleet.adapters.redis.sessions.conversations import Begun, StoredJournal
from fleet.adapters.redis.sessions.sessions import SessionRecord
from fleet.core.ports import Message
from fleet.ground.tasks import running
from fleet.roles.worker.announcements import kept as kept_module
from fleet.roles.worker.announcements.delivery import always
from fleet.roles.worker.announcements.kept import AFTER_HELLO_SECONDS, KeptText, KeptTexts
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.messages import AudioFormat
from tests.support.virtual_time import elapse

MAC = "aa:bb:cc:dd:ee:ff"
AUDIO = AudioFormat(16_000, 60)
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HEARD = UtteranceEvent(device=MAC, session="s1", turn="t1", text="light")


class Still(datetime):
    """The time of day, which stands still: a busy machine changes no wait."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return NOW.astimezone(tz)


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "datetime", Still)


async def note(turn: str) -> None:
    """Nothing is noted."""


def text(session: str = "s1") -> KeptText:
    return KeptText(session, "Tea is ready.", "", note, always)


def begun(ago: float | None = 0.0, journal: StoredJournal | None = None, *, late: bool = False) -> Begun:
    """Return a turn of a session that began so many seconds ago; None: nothing was kept for it."""
    kept = 0 if ago is None else round(NOW.timestamp() - ago)
    session = SessionRecord("s1", MAC, "xiaozhi", "e1", 7, "0" * 32, AUDIO, AUDIO, kept=kept)
    return Begun(session, journal, late=late)


async def seconds(kept: KeptTexts, turn: Begun) -> float:
    """Return how long a turn waits that gets nothing."""
    clock = asyncio.get_running_loop().time
    began = clock()
    async with kept.taken(turn, HEARD) as found:
        assert found is None
    return clock() - began


async def test_the_first_turn_waits_until_some_seconds_after_the_hello() -> None:
    kept = KeptTexts()
    assert await seconds(kept, begun(0)) == pytest.approx(AFTER_HELLO_SECONDS)
    assert await seconds(kept, begun(2)) == pytest.approx(AFTER_HELLO_SECONDS - 2)
    assert await seconds(kept, begun(-60)) == pytest.approx(AFTER_HELLO_SECONDS), "the clock of Redis is another one"
    assert await seconds(kept, begun(60)) == 0
    assert await seconds(kept, begun(None)) == 0


async def test_a_text_that_comes_while_a_turn_waits_is_taken_at_once() -> None:
    kept, offer = KeptTexts(), text()

    async def come() -> None:
        await elapse(1.0)
        with kept.offered(MAC, offer):
            await offer.decided.wait()

    clock = asyncio.get_running_loop().time
    began = clock()
    async with running("delivery", come):
        async with kept.taken(begun(), HEARD) as found:
            assert found is offer and offer.turn == "t1" and not offer.decided.is_set()
            assert clock() - began == pytest.approx(1.0)
        assert offer.decided.is_set()


async def test_one_text_is_taken_by_one_turn_and_may_be_given_back() -> None:
    kept, offer = KeptTexts(), text()
    with kept.offered(MAC, offer):
        async with kept.taken(begun(), HEARD) as found:
            assert found is offer
        async with kept.taken(begun(), HEARD) as found:
            assert found is None
        kept.give_back(MAC, "another")
        assert offer.turn == "t1"
        kept.give_back(MAC, "t1")
        assert (offer.turn, offer.handed, offer.decided.is_set()) == ("", False, False)
        async with kept.taken(begun(), HEARD) as found:
            assert found is offer
    kept.give_back(MAC, "t1")


@pytest.mark.parametrize(
    ("turn", "heard", "session"),
    [
        (begun(), UtteranceEvent(device=MAC, session="", turn="t1", text="light", typed=True), "s1"),
        (begun(journal=StoredJournal("t1", "running", (Message("user", "light"),), 0)), HEARD, "s1"),
        (begun(late=True), HEARD, "s1"),
        (begun(), HEARD, "another"),
    ],
)
async def test_typed_turns_turns_that_are_taken_up_and_those_of_other_sessions_take_nothing(
    turn: Begun, heard: UtteranceEvent, session: str
) -> None:
    kept = KeptTexts()
    with kept.offered(MAC, text(session)):
        async with kept.taken(turn, heard) as found:
            assert found is None
