"""Which operators have talked."""

from fleet.adapters.redis.access.talking_operators import TalkingOperators
from fleet.adapters.redis.client.store import Store


async def test_an_operator_is_known_by_token_and_name_until_removed(store: Store) -> None:
    operators = TalkingOperators(store)
    assert await operators.read() == []
    for digest, name in (("a1", "Li Ng"), ("b2", "Li Ng"), ("a1", "Li Ng")):
        await operators.add(digest, name)
    assert sorted(await operators.read()) == [("a1", "Li Ng"), ("b2", "Li Ng")]
    await operators.remove("a1", "Li Ng")
    assert await operators.read() == [("b2", "Li Ng")]
