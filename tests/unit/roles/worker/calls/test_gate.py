import asyncio

from fleet.roles.worker.calls.gate import CallGate


async def test_slow_calls_pass_alone_and_in_the_order_of_arrival() -> None:
    gate, inside, most = CallGate(), 0, 0
    order: list[str] = []
    go = {name: asyncio.Event() for name in ("a", "b", "slow", "c", "late")}

    async def call(name: str) -> None:
        nonlocal inside, most
        async with gate.alone() if name == "slow" else gate.side_by_side():
            inside += 1
            order.append(name)
            assert name != "slow" or inside == 1
            await go[name].wait()
            inside -= 1

    async def settle() -> None:
        for _ in range(10):
            await asyncio.sleep(0)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        for name in go:
            group.create_task(call(name))
        await settle()
        assert order == ["a", "b"]
        go["a"].set()
        await settle()
        assert order == ["a", "b"]
        go["b"].set()
        await settle()
        assert order == ["a", "b", "slow"]
        go["slow"].set()
        await settle()
        assert order == ["a", "b", "slow", "c", "late"]
        go["c"].set()
        go["late"].set()


async def test_a_call_that_is_given_up_does_not_block_the_others() -> None:
    gate = CallGate()

    async def wait_for_ever() -> None:
        async with gate.alone():
            await asyncio.Event().wait()

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        stuck = group.create_task(wait_for_ever())
        await asyncio.sleep(0)
        stuck.cancel()
        async with gate.side_by_side():
            pass
        async with gate.alone():
            pass
