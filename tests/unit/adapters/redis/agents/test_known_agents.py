from fleet.adapters.redis import keys
from fleet.adapters.redis.agents.known_agents import KnownAgents
from fleet.adapters.redis.client.store import Store
from fleet.wire.agents import NO_AGENT, AgentDocument, CompiledAgent

ANN, BOB = (CompiledAgent(id=name, document=AgentDocument(prompt=name)) for name in ("ann", "bob"))


async def test_a_known_agent_asks_redis_no_more_until_too_many_are_known(store: Store) -> None:
    known = KnownAgents(store, most=1)
    await known.compiled.publish([ANN, BOB])
    assert await known.find(ANN.digest) == ANN
    await store.client.delete(keys.agent_document(ANN.digest))
    assert await known.find(ANN.digest) == ANN
    assert await known.find(BOB.digest) == BOB
    assert await known.find(ANN.digest) is NO_AGENT


async def test_an_unreadable_document_leaves_the_settings(store: Store) -> None:
    known = KnownAgents(store)
    await store.client.set(keys.agent_document("d"), "{")
    assert await known.find("d") is NO_AGENT
    assert await known.find("") is NO_AGENT
