"""Sign-ins of operators; what control makes of them: integration/control."""

from fleet.adapters.redis.access.sign_ins import IDLE_SECONDS, SignIn, SignIns, digest_of_secret
from fleet.adapters.redis.client.store import Store
from tests.support.memory_store import connection_of
from tests.support.virtual_time import elapse

ONE, OTHER = digest_of_secret("one"), digest_of_secret("other")
SIGN_IN = SignIn(account=7, epoch=2, began=1, until=9)


async def test_a_sign_in_is_known_by_its_own_secret_until_it_ends(store: Store) -> None:
    sign_ins = SignIns(store)
    await sign_ins.begin(ONE, SIGN_IN)
    await sign_ins.begin(OTHER, SignIn(8, 0, 0, 0))
    assert (await sign_ins.use(ONE), await sign_ins.use(digest_of_secret("none"))) == (SIGN_IN, None)
    await sign_ins.end(OTHER)
    assert (await sign_ins.use(ONE), await sign_ins.use(OTHER)) == (SIGN_IN, None)


async def test_a_sign_in_ends_when_nobody_has_used_it_for_a_while(store: Store) -> None:
    sign_ins = SignIns(store)
    await sign_ins.begin(ONE, SIGN_IN)
    for _ in range(2):
        await elapse(IDLE_SECONDS - 1)
        assert await sign_ins.use(ONE) == SIGN_IN
    await elapse(IDLE_SECONDS + 1)
    assert await sign_ins.use(ONE) is None


async def test_one_of_another_version_has_to_sign_in_again(store: Store) -> None:
    sign_ins, redis = SignIns(store), connection_of(store).redis
    await sign_ins.begin(ONE, SIGN_IN)
    [name] = redis.run("SCAN", "0", "MATCH", f"*{ONE}*")[1]
    redis.run("SET", name, '{"account":"seven"}')
    assert await sign_ins.use(ONE) is None


def test_redis_does_not_hold_the_secret() -> None:
    assert len(ONE) == 64 and "one" not in ONE and digest_of_secret("\ud800")
