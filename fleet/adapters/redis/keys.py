"""Every key name and every life time. `{n}` is the shard, and the hash tag that keeps a shard's keys on one node."""

import hashlib

from fleet.wire.topics import shard_of

DEVICE_SECONDS = 90 * 24 * 3600
"""What a device said at boot is kept this long after it was last heard of: it boots rarely."""
SESSION_SECONDS = 3600
TURN_SECONDS = 600
CALL_KEPT_MS = 300_000
"""How long the outcome of a call can be read after its deadline."""
EDGE_SECONDS = 5
INDEX_SECONDS = 24 * 3600
"""How long the sessions of an edge can be found by it after the last of them was opened."""
EDGE_MAIL_SECONDS = 120
MAILBOX_LENGTH = 1000
"""Messages that a mailbox holds; the oldest give way."""


def prefix(shard: int) -> str:
    """Return what the names of all keys of a shard begin with."""
    return f"f:{{{shard}}}:"


class ShardKeys:
    """Names of the keys that a shard has once."""

    def own(self, shard: int) -> str:
        return f"{prefix(shard)}own"

    def fence(self, shard: int) -> str:
        return f"{prefix(shard)}fence"

    def mailbox(self, shard: int) -> str:
        return f"{prefix(shard)}mb"

    def deadlines(self, shard: int) -> str:
        return f"{prefix(shard)}pend"

    def online(self, shard: int) -> str:
        return f"{prefix(shard)}on"

    def seen(self, shard: int) -> str:
        """Return the sorted set of a shard's devices by their last bootstrap that was served."""
        return f"{prefix(shard)}seen"

    def young(self, shard: int) -> str:
        """Return the sorted set of MACs that never connected, by the time of their last bootstrap that was served."""
        return f"{prefix(shard)}young"

    def old(self, shard: int) -> str:
        """Return the sorted set of devices with an old password, by the time when they may be asked to restart."""
        return f"{prefix(shard)}old"

    def due(self, shard: int) -> str:
        """Return the sorted set of devices of which a generation is to be required, by the time when."""
        return f"{prefix(shard)}due"

    def session_edges(self, shard: int) -> str:
        """Return the set of all edges that hold sessions of a shard's devices, dead ones too."""
        return f"{prefix(shard)}edges"


class Keys(ShardKeys):
    """All key names, for one number of shards."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def shard(self, mac: str) -> int:
        return shard_of(mac, self.shards)

    def device(self, mac: str) -> str:
        return self._of("d", mac)

    def session(self, mac: str) -> str:
        return self._of("s", mac)

    def tools(self, mac: str) -> str:
        return self._of("tools", mac)

    def turn(self, mac: str) -> str:
        return self._of("t", mac)

    def history(self, mac: str) -> str:
        return self._of("h", mac)

    def reports(self, mac: str) -> str:
        return self._of("r", mac)

    def persona(self, mac: str) -> str:
        return self._of("p", mac)

    def reply(self, mac: str, turn: str) -> str:
        return f"{self._of('a', mac)}:{turn}"

    def claims(self, mac: str) -> str:
        """Return the hash of those who ask with a MAC that is another's, by their Client-Id."""
        return self._of("q", mac)

    def refused(self, mac: str, client: str) -> str:
        """Return the mark of a Client-Id whose claim of a MAC was refused."""
        who = hashlib.sha256(client.encode(errors="replace")).hexdigest()[:16]
        return f"{self._of('no', mac)}:{who}"

    def call(self, mac: str, number: int | str) -> str:
        return f"{self._of('c', mac)}:{number}"

    def idempotency(self, mac: str, name: str) -> str:
        return f"{self._of('i', mac)}:{name}"

    def _of(self, kind: str, mac: str) -> str:
        return f"{prefix(self.shard(mac))}{kind}:{mac}"


def probe(shard: int) -> str:
    """Return a key that is written to see whether its node takes writes."""
    return f"{prefix(shard)}probe"


WORKERS = "workers"
"""Sorted set of the live workers by the time of their last heartbeat."""
LOADS = "loads:{workers}"
"""Hash of how many shards each of them owns."""
EDGES = "edges"
"""Set of the ids of all edges that were seen; dead ones are removed by who notices."""


def edge(edge_id: str) -> str:
    return f"edge:{edge_id}"


def edge_mailbox(edge_id: str) -> str:
    return f"mb:{{e:{edge_id}}}"
