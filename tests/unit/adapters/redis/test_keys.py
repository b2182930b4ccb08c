import inspect

from redis.crc import key_slot

from fleet.adapters.redis import keys as module
from fleet.adapters.redis.devices.traces import FIELDS
from fleet.adapters.redis.keys import Keys, edge, edge_inbox, probe

MAC = "aa:bb:cc:dd:ee:ff"
OF_SHARD = "own fence mb pend on seen young old due edges probe"
OF_DEVICE = "d s tools t h r p q"


def test_all_keys_of_a_shard_live_on_one_node_of_a_cluster() -> None:
    keys = Keys(16)
    shard = keys.shard(MAC)
    names = [keys.own(shard), keys.fence(shard), keys.inbox(shard), keys.deadlines(shard), keys.device(MAC)]
    names += [keys.session(MAC), keys.tools(MAC), keys.turn(MAC), keys.history(MAC), keys.reports(MAC)]
    names += [keys.call(MAC, 7), keys.idempotency(MAC, "turn{1}:call")]
    assert len({key_slot(name.encode()) for name in names}) == 1


def test_every_key_of_a_shard_and_of_its_devices_begins_with_the_shards_prefix() -> None:
    keys = Keys(16)
    shard = keys.shard(MAC)
    names = {}
    for name, method in inspect.getmembers(keys, inspect.ismethod):
        wanted = list(inspect.signature(method).parameters)
        if wanted and wanted[0] in ("shard", "mac") and name not in ("shard", "_of"):
            names[name] = method(*(shard if one == "shard" else MAC for one in wanted))
    assert len(names) > 30 and {"own", "delivery", "call"} <= names.keys()
    assert not {name: key for name, key in names.items() if not key.startswith(module.prefix(shard))}
    assert len(set(names.values())) == len(names), "no two of them are the same"


def test_shards_are_spread_over_the_nodes_of_a_cluster() -> None:
    slots = [key_slot(Keys(16).own(shard).encode()) for shard in range(16)]
    assert len({slot * 3 // 16384 for slot in slots}) == 3


def test_edges_have_inboxes_of_their_own() -> None:
    assert key_slot(edge_inbox("a").encode()) != key_slot(edge_inbox("b").encode())


def test_names_and_lives_are_those_of_the_data_that_servers_hold() -> None:
    keys = Keys(16)
    shard = keys.shard(MAC)
    of_shard = [
        keys.own,
        keys.fence,
        keys.inbox,
        keys.deadlines,
        keys.online,
        keys.seen,
        keys.young,
        keys.old,
        keys.due,
    ]
    assert [name(7) for name in (*of_shard, keys.session_edges, probe)] == [
        f"f:{{7}}:{name}" for name in OF_SHARD.split()
    ]
    of_device = (
        keys.device,
        keys.session,
        keys.tools,
        keys.turn,
        keys.history,
        keys.reports,
        keys.persona,
        keys.claims,
    )
    assert [name(MAC) for name in of_device] == [f"f:{{{shard}}}:{kind}:{MAC}" for kind in OF_DEVICE.split()]
    assert keys.reply(MAC, "turn") == f"f:{{{shard}}}:a:{MAC}:turn"
    assert keys.call(MAC, 7) == f"f:{{{shard}}}:c:{MAC}:7"
    assert keys.idempotency(MAC, "name") == f"f:{{{shard}}}:i:{MAC}:name"
    assert keys.refused(MAC, "client") == f"f:{{{shard}}}:no:{MAC}:948fe603f61dc036"
    assert (edge("a"), edge_inbox("a")) == ("edge:a", "mb:{e:a}")
    assert (module.WORKERS, module.LOADS, module.EDGES) == ("workers", "loads:{workers}", "edges")
    assert (module.DEVICE_SECONDS, module.SESSION_SECONDS, module.TURN_SECONDS) == (7_776_000, 3600, 600)
    assert (module.CALL_KEPT_MS, module.EDGE_SECONDS, module.INDEX_SECONDS) == (300_000, 5, 86_400)
    assert (module.EDGE_INBOX_SECONDS, module.INBOX_LENGTH) == (120, 1000)


def test_fields_of_traces_are_those_of_the_data_that_servers_hold() -> None:
    assert " ".join(FIELDS.values()) == "tp th tr tb ta te tu tv ts tx"
