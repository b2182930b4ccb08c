import asyncio

from fleet.ground.requester import requester, working_for


async def test_tasks_work_for_whom_they_were_started() -> None:
    async def asked() -> str:
        return requester()

    with working_for("a"):
        mine = asyncio.create_task(asked())
        with working_for("b"):
            other = asyncio.create_task(asked())
        assert requester() == "a"
    assert (await mine, await other, requester()) == ("a", "b", "")
