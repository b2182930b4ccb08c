import asyncio

from fleet.roles.control.access import Principal
from fleet.roles.control.following.turns import Turns
from tests.support.virtual_time import elapse
from tests.unit.roles.control.following.test_feed import one_of


async def test_tenants_take_turns_and_then_their_tokens() -> None:
    turns, order = Turns(1), list[int]()

    async def read(who: Principal) -> None:
        async with turns.taken(who):
            order.append(who.token)
            await elapse(1)

    crowd = [one_of(1)] * 4 + [one_of(2)] * 2 + [one_of(3, tenant=2)] * 2
    async with asyncio.TaskGroup() as group:
        for who in crowd:
            group.create_task(read(who))
    assert order == [1, 1, 3, 2, 3, 1, 2, 1]


async def test_whoever_goes_leaves_its_turn_to_the_next() -> None:
    turns = Turns(1)
    waiting: list[asyncio.Task[None]] = []

    async def read() -> None:
        async with turns.taken(one_of(1)):
            pass

    async with turns.taken(one_of(1)):
        waiting = [asyncio.create_task(read()) for _ in range(3)]
        await elapse(0)
        waiting[0].cancel()
        await elapse(0)
    # The second one has the place and does not know yet.
    waiting[1].cancel()
    await asyncio.wait(waiting)
    assert [one.cancelled() for one in waiting] == [True, True, False]
    async with asyncio.timeout(1), turns.taken(one_of(2)):
        pass
