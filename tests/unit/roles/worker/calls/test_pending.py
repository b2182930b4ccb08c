from fleet.roles.worker.calls.pending import DISCONNECTED, PendingCalls
from fleet.wire.messages import ResponseEvent

MAC = "aa:bb:cc:dd:ee:ff"


async def test_an_answer_reaches_who_waits_for_it() -> None:
    waiters = PendingCalls()
    with waiters.register(MAC, 7) as waiting:
        assert waiters.resolve(MAC, ResponseEvent("7", "yes"))
        assert await waiting == ResponseEvent("7", "yes")


async def test_late_repeated_and_foreign_answers_reach_nobody() -> None:
    waiters = PendingCalls()
    with waiters.register(MAC, 7) as waiting:
        assert not waiters.resolve(MAC, ResponseEvent("8"))
        assert not waiters.resolve("other", ResponseEvent("7"))
        waiters.resolve(MAC, ResponseEvent("7", "first"))
        waiters.resolve(MAC, ResponseEvent("7", "second"))
        assert (await waiting).result == "first"
    assert not waiters.resolve(MAC, ResponseEvent("7"))


async def test_who_waits_for_a_device_hears_that_it_left() -> None:
    waiters = PendingCalls()
    with waiters.register(MAC, 1) as one, waiters.register(MAC, 2) as two:
        waiters.disconnect(MAC)
        assert await one is DISCONNECTED
        assert await two is DISCONNECTED


async def test_nothing_is_left_behind() -> None:
    waiters = PendingCalls()
    with waiters.register(MAC, 1):
        pass
    assert waiters._waiting == {}
