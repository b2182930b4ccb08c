"""A device that bootstrap has served, without asking bootstrap."""

from collections.abc import Mapping

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker
from fleet.adapters.redis.client.store import Store


async def note_device(store: Store, mac: str, fields: Mapping[str, str], dialect: str = "") -> None:
    """Write a device down as bootstrap does under an open policy."""
    await Admissions(store).decide("open", BootstrapAsker(mac, "", dialect=dialect), fields)
