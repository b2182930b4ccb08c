from collections import Counter
from typing import Any

import pytest

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import running
from fleet.roles.edge.outbox import LONGEST, NotificationQueue
from fleet.wire.edge_messages import SessionSilentEvent
from tests.support.virtual_time import elapse


class Inboxes:
    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.delivered = failure, list[str]()

    async def to_shard(self, shard: int, event: Any) -> None:
        failure, self.failure = self.failure, None
        if failure:
            raise failure
        self.delivered.append(event.session)


def silent(session: str) -> SessionSilentEvent:
    return SessionSilentEvent(device="d", session=session, reason="idle")


@pytest.mark.parametrize("failure", [Unavailable("away"), TimeoutError()])
async def test_events_go_out_in_order_and_one_that_fails_is_counted(failure: Exception) -> None:
    inboxes, counters = Inboxes(failure), Counter[str]()
    queue = NotificationQueue(inboxes, counters)  # type: ignore[arg-type]
    async with running("outbox", queue.run):
        for number in range(3):
            queue.put(0, silent(str(number)))
        await elapse(1)
    assert inboxes.delivered == ["1", "2"] and counters == {"outbox_failed": 1}


async def test_too_many_events_are_dropped_and_counted() -> None:
    counters = Counter[str]()
    queue = NotificationQueue(Inboxes(), counters)  # type: ignore[arg-type]
    for number in range(LONGEST + 2):
        queue.put(0, silent(str(number)))
    assert counters == {"outbox_full": 2}
