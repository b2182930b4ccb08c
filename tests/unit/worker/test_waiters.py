from fleet.wire.words import Answer
from fleet.worker.waiters import DISCONNECTED, Waiters

MAC = "aa:bb:cc:dd:ee:ff"


async def test_an_answer_reaches_who_waits_for_it() -> None:
    waiters = Waiters()
    with waiters.expect(MAC, 7) as waiting:
        assert waiters.resolve(MAC, Answer("7", "yes"))
        assert await waiting == Answer("7", "yes")


async def test_late_repeated_and_foreign_answers_reach_nobody() -> None:
    waiters = Waiters()
    with waiters.expect(MAC, 7) as waiting:
        assert not waiters.resolve(MAC, Answer("8"))
        assert not waiters.resolve("other", Answer("7"))
        waiters.resolve(MAC, Answer("7", "first"))
        waiters.resolve(MAC, Answer("7", "second"))
        assert (await waiting).result == "first"
    assert not waiters.resolve(MAC, Answer("7"))


async def test_who_waits_for_a_device_hears_that_it_left() -> None:
    waiters = Waiters()
    with waiters.expect(MAC, 1) as one, waiters.expect(MAC, 2) as two:
        waiters.disconnect(MAC)
        assert await one is DISCONNECTED
        assert await two is DISCONNECTED


async def test_nothing_is_left_behind() -> None:
    waiters = Waiters()
    with waiters.expect(MAC, 1):
        pass
    assert waiters._waiting == {}
