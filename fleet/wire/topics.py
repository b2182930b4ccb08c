"""The topic plan: a device's topics, slot and shard follow from its MAC.

Every device has one canonical name, its MAC in lower case with colons, which is also its MQTT client id. The slot in
the topic is fixed for ever; `FLEET_SHARDS` only groups slots.
"""

import binascii
import re
from functools import lru_cache

SLOTS = 256
"""Number of slots in the topic plan; never changes."""
REMEMBERED = 4096
"""Topics and MACs whose parts are remembered: a device sends several messages in a row. About 300 bytes each."""

_MAC = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_UP = re.compile(rf"fleet/(up|presence)/(\d{{1,3}})/({_MAC.pattern})")

_LONGEST = len("fleet/presence/255/00:11:22:33:44:55")


def canonical_mac(text: str) -> str | None:
    """Return the MAC in its canonical form, or None if `text` is not a MAC in any usual spelling."""
    if _MAC.fullmatch(text):
        return text
    digits = re.sub(r"[:\-._\s]", "", text.strip()).lower()
    mac = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    return mac if _MAC.fullmatch(mac) else None


@lru_cache(maxsize=REMEMBERED)
def slot(mac: str) -> int:
    """Return the slot 0…255 of a canonical MAC: CRC-16/XMODEM (the one of Redis Cluster) modulo 256."""
    return binascii.crc_hqx(mac.encode(), 0) % SLOTS


def shard_of(mac: str, shards: int) -> int:
    """Return the shard of a canonical MAC; `shards` divides 256."""
    return slot(mac) * shards // SLOTS


def up_topic(mac: str) -> str:
    return f"fleet/up/{slot(mac)}/{mac}"


def down_topic(mac: str) -> str:
    return f"fleet/down/{mac}"


def presence_topic(mac: str) -> str:
    return f"fleet/presence/{slot(mac)}/{mac}"


def lost_topic(shard: int) -> str:
    """Return the topic of the MQTT Will of a shard's session."""
    return f"fleet/shard/{shard}/lost"


def shard_client_id(shard: int) -> str:
    """Return the client id of a shard's persistent MQTT session."""
    return f"fleet-shard-{shard}"


def shard_filters(shard: int, shards: int) -> list[str]:
    """Return the topic filters that a shard's session subscribes to."""
    width = SLOTS // shards
    slots = range(shard * width, (shard + 1) * width)
    return [f"fleet/{kind}/{number}/+" for number in slots for kind in ("up", "presence")]


def parse(topic: str) -> tuple[str, str] | None:
    """Return (`up` or `presence`, mac) of a shard's topic, or None if its slot does not fit its MAC."""
    return _parse(topic) if len(topic) <= _LONGEST else None


@lru_cache(maxsize=REMEMBERED)
def _parse(topic: str) -> tuple[str, str] | None:
    found = _UP.fullmatch(topic)
    if not found:
        return None
    kind, number, mac = found.groups()
    return (kind, mac) if number == str(slot(mac)) else None
