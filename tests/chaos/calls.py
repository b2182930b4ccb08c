"""The server's records of calls, read from its Redis while the run lasts: they expire after some minutes."""

import asyncio
import json

import redis.asyncio
from redis.exceptions import RedisError

from tests.chaos.history import Call, State

_EVERY = 10.0
_STATES: dict[str, State] = {"S": "sent", "U": "unknown", "N": "not_sent"}


class CallRecords:
    """Looks every ten seconds, and keeps every state in which a call was seen.

    Args:
        url: Of the Redis.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._seen: dict[tuple[str, int], Call] = {}

    @property
    def calls(self) -> list[Call]:
        return list(self._seen.values())

    async def run(self) -> None:
        """Look for ever; a Redis that is away is asked again."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.look()
            except (RedisError, OSError):
                continue

    async def look(self) -> None:
        """Read all records that there are now.

        Raises:
            RedisError: Redis is away.
        """
        async with redis.asyncio.Redis.from_url(self._url, decode_responses=True, socket_timeout=5.0) as client:
            keys = [key async for key in client.scan_iter("f:*:c:*", count=1000)]
            pipe = client.pipeline(transaction=False)
            for key in keys:
                pipe.hmget(key, ["st", "res"])
            for key, (state, result) in zip(keys, await pipe.execute(), strict=True):
                if state:
                    self._take(key, state, result or "")

    def _take(self, key: str, state: str, result: str) -> None:
        mac, _, number = key.partition(":c:")[2].rpartition(":")
        now, text = read(state, result)
        known = self._seen.get((mac, int(number)))
        states = known.states if known else ()
        if not states or states[-1] != now:
            states = (*states, now)
        self._seen[mac, int(number)] = Call(mac, int(number), states, text)


def read(state: str, result: str) -> tuple[State, str]:
    """Return the state and the text of a record as the store keeps it."""
    if state != "D":
        return _STATES[state], ""
    status, text = json.loads(result)
    return ("ok" if status == "ok" else "error"), str(text)
