import asyncio

from fleet.roles.front.limits import FrontLimits
from fleet.roles.front.proxied_connection import ProxiedConnection
from fleet.roles.front.reader_wait import LOOK_SECONDS, ReaderWait
from tests.support.virtual_time import elapse


class Readers:
    def __init__(self) -> None:
        self.there, self.looks = False, 0
        self.wait = ReaderWait(self.is_read)
        self.waiting: list[asyncio.Task[bool]] = []
        self.connections: list[ProxiedConnection] = []

    def is_read(self) -> bool:
        self.looks += 1
        return self.there

    async def begin(self, count: int) -> None:
        for _ in range(count):
            connection = ProxiedConnection(FrontLimits(connect=3600.0), lambda connection, packet: None)
            self.connections.append(connection)
            self.waiting.append(asyncio.get_running_loop().create_task(self.wait.wait(connection)))
        await elapse(LOOK_SECONDS / 2)

    @property
    def done(self) -> int:
        return sum(task.done() for task in self.waiting)

    def close(self) -> None:
        for connection in self.connections:
            connection.abort()


async def test_nobody_waits_while_somebody_reads() -> None:
    readers = Readers()
    readers.there = True
    await readers.begin(2)
    assert readers.done == 2
    await elapse(1)
    assert readers.looks == 2, "nobody looks for those who do not wait"
    readers.close()


async def test_all_go_on_together_once_somebody_reads() -> None:
    readers = Readers()
    await readers.begin(50)
    await elapse(1)
    assert (readers.done, len(readers.wait)) == (0, 50)
    readers.there = True
    await elapse(2 * LOOK_SECONDS)
    assert (readers.done, len(readers.wait)) == (50, 0)
    assert all(task.result() for task in readers.waiting)
    readers.close()


async def test_one_look_serves_all() -> None:
    readers = Readers()
    await readers.begin(50)
    readers.looks = 0
    await elapse(100 * LOOK_SECONDS)
    assert 99 <= readers.looks <= 101
    readers.close()


async def test_a_connection_that_ends_waits_no_longer() -> None:
    readers = Readers()
    await readers.begin(2)
    readers.connections[0].end("lost")
    await elapse(LOOK_SECONDS / 4)
    assert (readers.done, len(readers.wait)) == (1, 1)
    assert not readers.waiting[0].result()
    readers.waiting[1].cancel()
    await elapse(2 * LOOK_SECONDS)
    assert len(readers.wait) == 0
    looks = readers.looks
    await elapse(1)
    assert readers.looks == looks
    readers.close()


async def test_readers_that_leave_again_are_waited_for() -> None:
    readers = Readers()
    await readers.begin(1)
    readers.there = True
    await elapse(2 * LOOK_SECONDS)
    assert readers.done == 1
    readers.there = False
    await readers.begin(1)
    await elapse(1)
    assert readers.done == 1
    readers.there = True
    await elapse(2 * LOOK_SECONDS)
    assert readers.done == 2
    readers.close()
