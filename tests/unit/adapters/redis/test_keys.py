from redis.crc import key_slot

from fleet.adapters.redis.keys import Keys, edge_inbox

MAC = "aa:bb:cc:dd:ee:ff"


def test_all_keys_of_a_shard_live_on_one_node_of_a_cluster() -> None:
    keys = Keys(16)
    shard = keys.shard(MAC)
    names = [keys.own(shard), keys.fence(shard), keys.inbox(shard), keys.deadlines(shard), keys.device(MAC)]
    names += [keys.session(MAC), keys.tools(MAC), keys.turn(MAC), keys.history(MAC), keys.reports(MAC)]
    names += [keys.call(MAC, 7), keys.idempotency(MAC, "turn{1}:call")]
    assert len({key_slot(name.encode()) for name in names}) == 1


def test_shards_are_spread_over_the_nodes_of_a_cluster() -> None:
    slots = [key_slot(Keys(16).own(shard).encode()) for shard in range(16)]
    assert len({slot * 3 // 16384 for slot in slots}) == 3


def test_edges_have_mailboxes_of_their_own() -> None:
    assert key_slot(edge_inbox("a").encode()) != key_slot(edge_inbox("b").encode())
