"""All key names and expiry times. `{n}` is the shard; as hash tag it keeps a shard's keys on one node."""

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from fleet.wire.topics import REMEMBERED, SLOTS, shard_of

T = TypeVar("T")

DEVICE_SECONDS = 90 * 24 * 3600
"""Life of a device's record after its last event; devices boot rarely."""
SESSION_SECONDS = 3600
TURN_SECONDS = 600
CALL_KEPT_MS = 300_000
"""Life of a call's outcome after its deadline."""
EDGE_SECONDS = 5
PROCESS_SECONDS = 16
"""Life of a process's announcement, which is repeated every five seconds."""
INDEX_SECONDS = 24 * 3600
"""Life of the index from an edge to its sessions, after the last one was opened."""
EDGE_INBOX_SECONDS = 120
INBOX_LENGTH = 1000
"""Entries that an inbox holds; the oldest ones are dropped."""


@lru_cache(maxsize=SLOTS)
def prefix(shard: int) -> str:
    """Return the prefix of all key names of a shard."""
    return f"f:{{{shard}}}:"


def owed_apologies(shard: int) -> str:
    """Return the name of the set of a shard's devices to which an apology is owed."""
    return f"{prefix(shard)}sorry"


def by_shard(shards: int, found: Iterable[T], mac_of: Callable[[T], str]) -> dict[int, list[T]]:
    """Return what belongs to devices by their shards, of which there are so many, in its order."""
    parts: dict[int, list[T]] = {}
    for one in found:
        parts.setdefault(shard_of(mac_of(one), shards), []).append(one)
    return parts


class ShardKeys:
    """Names of the keys that exist once for each shard."""

    def own(self, shard: int) -> str:
        return f"{prefix(shard)}own"

    def fence(self, shard: int) -> str:
        return f"{prefix(shard)}fence"

    def inbox(self, shard: int) -> str:
        return f"{prefix(shard)}mb"

    def events(self, shard: int) -> str:
        """Return the stream of a shard's events; it exists only while control wants them."""
        return f"{prefix(shard)}ev"

    def deadlines(self, shard: int) -> str:
        return f"{prefix(shard)}pend"

    def online(self, shard: int) -> str:
        return f"{prefix(shard)}on"

    def seen(self, shard: int) -> str:
        """Return the sorted set of a shard's devices by their last served bootstrap."""
        return f"{prefix(shard)}seen"

    def young(self, shard: int) -> str:
        """Return the sorted set of MACs that never connected, by their last served bootstrap."""
        return f"{prefix(shard)}young"

    def old(self, shard: int) -> str:
        """Return the sorted set of devices with an old password, by the time when they may be asked to restart."""
        return f"{prefix(shard)}old"

    def due(self, shard: int) -> str:
        """Return the sorted set of devices by the time when a new generation is required of them."""
        return f"{prefix(shard)}due"

    def conversations(self, shard: int) -> str:
        """Return the sorted set of devices whose conversation is to be remembered, by the time when that is due."""
        return f"{prefix(shard)}mdue"

    def agents(self, shard: int) -> str:
        """Return the hash of all agents: `digest messages-of-history` by the agent's id, and at `*` the site's id.

        Every shard has its own copy, so that one function reads it together with the keys of a device.
        """
        return f"{prefix(shard)}agents"

    def operator_calls(self, shard: int) -> str:
        """Return the stream of operators' calls that have not ended."""
        return f"{prefix(shard)}oq"

    def operator_records(self, shard: int) -> str:
        """Return the sorted set of the records of operators' calls, by their end in ms."""
        return f"{prefix(shard)}ocs"

    def session_edges(self, shard: int) -> str:
        """Return the set of all edges that hold sessions of a shard's devices, dead ones too."""
        return f"{prefix(shard)}edges"


class JobKeys:
    """Names of the keys that the calls of jobs have once for each shard."""

    def job_fence(self, shard: int) -> str:
        """Return the newest fence of control's lease that handed calls of jobs to a shard."""
        return f"{prefix(shard)}jf"

    def job_outcomes(self, shard: int) -> str:
        """Return the stream of the outcomes of jobs' calls that control has not stored yet."""
        return f"{prefix(shard)}jo"

    def state_outcomes(self, shard: int) -> str:
        """Return the same of the calls that desired states make."""
        return f"{prefix(shard)}jos"


class ClipKeys:
    """Names of the keys of announcements."""

    def clip_receipts(self, shard: int) -> str:
        """Return the stream of what became of the clips that a shard's devices were sent."""
        return f"{prefix(shard)}clips"

    def delivery(self, shard: int, delivery: str) -> str:
        """Return the record of one delivery of an announcement."""
        return f"{prefix(shard)}an:{delivery}"


class ReminderKeys:
    """Names of the keys that reminders have once for each shard."""

    def reminders_due(self, shard: int) -> str:
        """Return the sorted set of a shard's reminders, as `mac|id`, by the time in ms when one is looked at next."""
        return f"{prefix(shard)}rdue"

    def reminders_begun(self, shard: int) -> str:
        """Return the hash of the reminders that are being delivered, by MAC."""
        return f"{prefix(shard)}rnow"


@lru_cache(maxsize=REMEMBERED)
def _prefix_of(mac: str, shards: int) -> str:
    return prefix(shard_of(mac, shards))


class DeviceKeys(ShardKeys, JobKeys, ClipKeys, ReminderKeys):
    """Names of the keys that a device has once, for one number of shards."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def shard(self, mac: str) -> int:
        return shard_of(mac, self.shards)

    def device(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}d:{mac}"

    def session(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}s:{mac}"

    def tools(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}tools:{mac}"

    def turn(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}t:{mac}"

    def history(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}h:{mac}"

    def reports(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}r:{mac}"

    def persona(self, mac: str) -> str:
        return f"{_prefix_of(mac, self.shards)}p:{mac}"

    def transcript(self, mac: str) -> str:
        """Return the stream of what is said on a device now; it exists only while somebody watches."""
        return f"{_prefix_of(mac, self.shards)}live:{mac}"

    def memory(self, mac: str) -> str:
        """Return the list of facts that are known from a device's users."""
        return f"{_prefix_of(mac, self.shards)}m:{mac}"

    def conversation(self, mac: str) -> str:
        """Return the hash about a conversation that is to be remembered: its length, and who remembers it now."""
        return f"{_prefix_of(mac, self.shards)}mc:{mac}"

    def reminders(self, mac: str) -> str:
        """Return the hash of a device's reminders, as JSON by their ids."""
        return f"{_prefix_of(mac, self.shards)}rem:{mac}"

    def claims(self, mac: str) -> str:
        """Return the hash of claims of a MAC, by Client-Id."""
        return f"{_prefix_of(mac, self.shards)}q:{mac}"


class Keys(DeviceKeys):
    """All key names."""

    def reply(self, mac: str, turn: str) -> str:
        return f"{_prefix_of(mac, self.shards)}a:{mac}:{turn}"

    def refused(self, mac: str, client: str) -> str:
        """Return the mark of a Client-Id whose claim of a MAC was refused."""
        who = hashlib.sha256(client.encode(errors="replace")).hexdigest()[:16]
        return f"{_prefix_of(mac, self.shards)}no:{mac}:{who}"

    def call(self, mac: str, number: int | str) -> str:
        return f"{_prefix_of(mac, self.shards)}c:{mac}:{number}"

    def operator_call(self, mac: str, call: str) -> str:
        """Return the record of an operator's call."""
        return f"{_prefix_of(mac, self.shards)}oc:{mac}:{call}"

    def idempotency(self, mac: str, name: str) -> str:
        return f"{_prefix_of(mac, self.shards)}i:{mac}:{name}"


def probe(shard: int) -> str:
    """Return a key for test writes to its node."""
    return f"{prefix(shard)}probe"


WORKERS = "workers"
"""Sorted set of the live workers by the time of their last heartbeat."""
LOADS = "loads:{workers}"
"""Hash of how many shards each of them owns."""
CONTROL_OWN = "{control}:own"
"""The lease of control: the process that does its work in the background."""
CONTROL_FENCE = "{control}:fence"
"""Number of that lease."""
CONTROL_LIFE = "{control}:life"
"""A random text: with it, Redis has lost its data if it is another one."""
CLIPS = "{clips}:"
"""Prefix of all clips; the hash tag keeps them on one node."""
EDGES = "edges"
"""Set of the ids of all announced edges; `Edges.live` removes dead ones."""

PROCESSES = "processes"
"""Set of the ids of all announced processes; `Processes.live` removes dead ones."""


def process(process_id: str) -> str:
    return f"process:{process_id}"


def agent_document(digest: str) -> str:
    """Return the document of an agent with this content; it never changes."""
    return f"agent:{digest}"


def edge(edge_id: str) -> str:
    return f"edge:{edge_id}"


def edge_inbox(edge_id: str) -> str:
    return f"mb:{{e:{edge_id}}}"
