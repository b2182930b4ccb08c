from fleet.adapters.redis.access.admissions import Admissions, admission_key
from fleet.adapters.redis.agents.compiled_agents import REPLACED_SECONDS, USUAL, CompiledAgents
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.sessions.conversations import Conversations
from fleet.adapters.redis.shards.edges import EdgeRecord, Edges
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.wire.agents import AgentDocument, CompiledAgent
from fleet.wire.edge_messages import AgentsChangedCommand
from tests.support.virtual_time import elapse

MAC, OTHER = "aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:00"


def agent(name: str, version: int = 1, **fields: object) -> CompiledAgent:
    return CompiledAgent(id=name, version=version, document=AgentDocument.model_validate(fields))


async def test_a_devices_own_agent_goes_before_that_of_the_site(store: Store) -> None:
    agents, ann, bob = CompiledAgents(store), agent("ann"), agent("bob")
    assert await agents.of_devices([MAC]) == [""]
    await agents.publish([ann, bob])
    assert await agents.of_devices([MAC]) == [""]
    await agents.set_usual("ann")
    await agents.assign({MAC: "bob"})
    assert await agents.of_devices([MAC, OTHER]) == [bob.digest, ann.digest]
    assert await agents.of_site() == ann.digest
    await agents.withdraw("bob")
    assert await agents.of_devices([MAC]) == [ann.digest]
    await agents.assign({MAC: ""})
    await agents.set_usual("")
    assert await agents.of_devices([MAC, OTHER]) == ["", ""]


async def test_a_turn_reads_the_newest_version_with_its_number_of_messages(store: Store) -> None:
    agents, conversations = CompiledAgents(store), Conversations(store, 60)
    await agents.publish([agent("ann")])
    await agents.set_usual("ann")
    for number in range(40):
        await store.client.rpush(store.keys.history(MAC), f'{{"role":"user","text":"{number}"}}')
    assert len((await conversations.context(MAC, 20)).history) == 20
    newer = agent("ann", 2, history_messages=0)
    await agents.publish([newer])
    context = await conversations.context(MAC, 20)
    assert (context.agent, context.history) == (newer.digest, ())


async def test_a_replaced_document_stays_readable_for_a_while(store: Store) -> None:
    agents, old, new = CompiledAgents(store), agent("ann"), agent("ann", 2)
    await agents.publish([old])
    await agents.publish([new])
    assert await agents.document(old.digest)
    await elapse(REPLACED_SECONDS + 1)
    assert await agents.document(old.digest) is None
    assert await agents.document(new.digest)


async def test_a_whole_compilation_removes_what_it_does_not_name(store: Store) -> None:
    agents, ann = CompiledAgents(store), agent("ann")
    await agents.publish([ann, agent("bob")])
    await agents.set_usual("bob")
    await agents.publish([ann], whole=True)
    assert await agents.heads() == {"ann": ann.digest}
    await agents.publish([ann], "ann", whole=True)
    assert await agents.heads() == {"ann": ann.digest, USUAL: "ann"}


async def test_an_assignment_outlives_the_hour_of_a_new_device_and_keeps_its_time_zone(store: Store) -> None:
    await Admissions(store).set_timezone(MAC, "60")
    await store.client.expire(admission_key(store, MAC), 3600)
    await CompiledAgents(store).assign({MAC: "ann"})
    await elapse(4000)
    assert (await Admissions(store).read(MAC)).timezone == "60"


async def test_all_edges_hear_of_a_change(store: Store) -> None:
    for name in ("e1", "e2"):
        await Edges(store).announce(EdgeRecord(name, "", 1, 0))
    await CompiledAgents(store).assign({MAC: "ann"})
    for name in ("e1", "e2"):
        assert await anext(aiter(Inboxes(store).read_edge(name))) == AgentsChangedCommand(device=MAC, session="")
