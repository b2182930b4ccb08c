import asyncio

from fleet.roles.worker.pending import PendingCalls, wait_for_answer

MAC = "aa:bb:cc:dd:ee:ff"
GONE = "gone"


async def test_an_answer_reaches_who_waits_for_it() -> None:
    waiters = PendingCalls(GONE)
    with waiters.register(MAC, 7) as waiting:
        assert waiters.resolve(MAC, "7", "yes")
        assert await wait_for_answer(waiting, 1, "late") == "yes"


async def test_all_who_wait_for_one_answer_get_it() -> None:
    waiters = PendingCalls(GONE)
    with waiters.register(MAC, 7) as one:
        with waiters.register(MAC, 7) as two, waiters.register(MAC, 7):
            pass
        assert waiters.awaits(MAC, "7"), "who leaves takes nobody else's place away"
        with waiters.register(MAC, 7) as three:
            assert waiters.resolve(MAC, "7", "yes")
    assert (one.result(), two.done(), three.result()) == ("yes", False, "yes")
    assert waiters._waiting == {}


async def test_late_repeated_and_foreign_answers_reach_nobody() -> None:
    waiters = PendingCalls(GONE)
    with waiters.register(MAC, 7) as waiting:
        assert not waiters.resolve(MAC, "8", "")
        assert not waiters.resolve("other", "7", "")
        waiters.resolve(MAC, "7", "first")
        waiters.resolve(MAC, "7", "second")
        assert await wait_for_answer(waiting, 1, "late") == "first"
    assert not waiters.resolve(MAC, "7", "")


async def test_who_waits_for_a_device_hears_that_it_left() -> None:
    waiters = PendingCalls(GONE)
    with waiters.register(MAC, 1) as one, waiters.register(MAC, 2) as two:
        waiters.disconnect(MAC)
        assert await wait_for_answer(one, 1, "late") is GONE
        assert await wait_for_answer(two, 1, "late") is GONE


async def test_an_answer_that_does_not_come_in_time_is_not_awaited() -> None:
    waiters, clock = PendingCalls(GONE), asyncio.get_running_loop().time
    begun = clock()
    with waiters.register(MAC, 1) as waiting:
        assert await wait_for_answer(waiting, 7, "late") == "late"
        assert 7 <= clock() - begun < 7.1
        assert waiters.resolve(MAC, "1", "too late")


async def test_nothing_is_left_behind() -> None:
    waiters = PendingCalls(GONE)
    with waiters.register(MAC, 1):
        pass
    assert waiters._waiting == {}


async def test_it_is_known_who_is_awaited() -> None:
    waiters = PendingCalls(GONE)
    assert MAC not in waiters.devices
    with waiters.register(MAC, 7):
        assert MAC in waiters.devices and waiters.awaits(MAC, "7")
        assert not waiters.awaits(MAC, "8") and not waiters.awaits("other", "7")
    assert MAC not in waiters.devices and not waiters.awaits(MAC, "7")
