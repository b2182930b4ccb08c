from collections.abc import Collection

from fleet.adapters.redis.sessions.transcripts import Transcripts
from fleet.ground.errors import Unavailable
from fleet.ground.tasks import running
from fleet.roles.control.access import Principal
from fleet.roles.control.following.following import CHECK_SECONDS, Following
from fleet.roles.control.following.live import LiveTranscripts
from tests.support.memory_store import memory_store
from tests.support.virtual_time import elapse
from tests.unit.roles.control.following.test_feed import event, one_of
from tests.unit.roles.control.following.test_stream import ALL, Site, read

MAC = "aa:bb:cc:00:00:01"


class Tokens:
    """Tokens that another process revokes."""

    def __init__(self, *ids: int) -> None:
        self.ids = set(ids)
        self.asked: list[set[int]] = []
        self.away = False

    async def existing(self, tokens: Collection[int]) -> set[int]:
        self.asked.append(set(tokens))
        if self.away:
            raise Unavailable("SQL is away")
        return self.ids & set(tokens)


def tokens_of(principals: Collection[Principal]) -> set[int]:
    return {one.token for one in principals}


class NoSignIns:
    """Accounts of which nobody is signed in."""

    async def ended(self, principals: Collection[Principal]) -> set[Principal]:
        return set()


async def test_streams_end_soon_after_another_process_has_revoked_their_token() -> None:
    site, tokens = Site([event(1)]), Tokens(1, 2)
    live = LiveTranscripts(Transcripts(await memory_store(shards=2)))
    following = Following(site.feed, site.streams, site.tail, live, tokens, NoSignIns())  # type: ignore[arg-type]
    async with running("followers", following.run):
        await elapse(CHECK_SECONDS * 2)
        assert tokens.asked == []
        ended, other, operator = [site.streams.follow(one_of(token), ALL, None) for token in (1, 2, 0)]
        watched = live.follow(one_of(1), MAC, 1000)
        for frames in (ended, other, operator, watched):
            await read(frames)
        await elapse(CHECK_SECONDS + 1)
        assert tokens.asked == [{1, 2}] and site.feed.count == 3
        tokens.ids, tokens.away = {2}, True
        await elapse(CHECK_SECONDS)
        assert len(tokens.asked) > 1 and tokens_of(site.feed.principals()) == {0, 1, 2}
        tokens.away = False
        await elapse(2 * CHECK_SECONDS)
        assert [frame async for frame in ended] == [] and [frame async for frame in watched] == []
        assert tokens_of(site.feed.principals()) == {0, 2} and live.principals() == set()
        site.happen(1)
        assert "id: 2" in await read(other) and "id: 2" in await read(operator)
