"""The front's own connection, against a broker that misbehaves."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.roles.front.presence import PresenceOutbox
from fleet.roles.front.presence_link import PresenceLink
from fleet.wire.identity import Credentials
from tests.support.front_client import CONNACK, PUBLISH, FrontClient, Received, frame

MAC = "02:00:00:00:00:07"


class Script:
    """A broker whose connections are given to the test, one after the other."""

    def __init__(self) -> None:
        self._arrived: asyncio.Queue[FrontClient] = asyncio.Queue()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = FrontClient(reader, writer)
        FrontClient.opened.append(client)
        self._arrived.put_nowait(client)

    async def next(self, code: int | None = 0) -> FrontClient:
        """Return the next connection, its CONNECT read and answered."""
        async with asyncio.timeout(240):
            client = await self._arrived.get()
        await client.next(1)
        if code is not None:
            await client.send(frame(CONNACK << 4, bytes((0, code))))
        return client

    async def published(self, client: FrontClient) -> Received:
        return await client.next(PUBLISH)


@asynccontextmanager
async def linked() -> AsyncIterator[tuple[PresenceLink, Script]]:
    """Run a link to a scripted broker."""
    script = Script()
    server = await asyncio.start_server(script.accept, "127.0.0.1", 0)
    address = MqttAddress("127.0.0.1", server.sockets[0].getsockname()[1])
    link = PresenceLink(address, Credentials("fleet-front-test", "", ""), PresenceOutbox(10, Counter()))
    async with server, asyncio.TaskGroup() as group:
        task = group.create_task(link.run())
        yield link, script
        task.cancel()


async def test_unacknowledged_news_is_sent_again_after_a_lost_connection() -> None:
    async with linked() as (link, script):
        first = await script.next()
        link.announce(MAC, b"on")
        assert (await script.published(first)).payload == b"on"
        first.abort()
        second = await script.next()
        again = await script.published(second)
        assert (again.payload, again.qos) == (b"on", 1)


async def test_only_the_latest_news_is_sent_after_an_outage() -> None:
    async with linked() as (link, script):
        refused = await script.next(code=3)
        for news in (b"on", b"off", b"on again"):
            link.announce(MAC, news)
        await refused.closed()
        client = await script.next()
        assert (await script.published(client)).payload == b"on again"
        link.announce(MAC, b"off at last")
        assert (await script.published(client)).payload == b"off at last"


async def test_acknowledged_news_is_not_sent_again() -> None:
    async with linked() as (link, script):
        first = await script.next()
        link.announce(MAC, b"on")
        await first.acknowledge(await script.published(first))
        link.announce("02:00:00:00:00:08", b"other")
        await script.published(first)  # by now the acknowledgement may still be on its way; closing in order keeps it
        first.writer.close()
        second = await script.next()
        assert (await script.published(second)).payload == b"other"


async def test_broker_that_answers_with_junk_is_tried_again() -> None:
    async with linked() as (link, script):
        junk = await script.next(code=None)
        await junk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)
        await junk.closed()
        link.announce(MAC, b"on")
        assert (await script.published(await script.next())).payload == b"on"
