"""One request to the model that is read ahead."""

import asyncio
import math
from typing import cast

from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.roles.worker.turns.head_start import LONGEST_SECONDS, HeadStart, Request
from fleet.wire.edge_messages import PrepareSentenceCommand
from tests.integration.worker.scripted import ScriptedLlm

ASKED = Request((), ())
SENTENCE = PrepareSentenceCommand(device="d", session="s", turn="t", text="", language="en", agent="")


async def test_a_turn_that_commits_just_as_the_time_is_over_takes_nothing() -> None:
    """The limit has passed, and the task that reads has not heard of it yet."""
    loop = asyncio.get_running_loop()
    taken = loop.create_future()
    llm = ScriptedLlm()
    llm.script = [[asyncio.Event()]]

    async def read() -> None:
        ahead = HeadStart(llm, ASKED)
        over = math.nextafter(loop.time() + LONGEST_SECONDS, math.inf)
        loop.call_at(over, lambda: taken.set_result(ahead.take(ASKED)))
        await ahead.read(cast(Inboxes, None), "edge", SENTENCE)

    await asyncio.wait([loop.create_task(read())])
    assert taken.result() is None
