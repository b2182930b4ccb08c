"""A device that bootstrap has served, without asking bootstrap."""

from collections.abc import Mapping

from fleet.store.admissions import Admissions, Asker
from fleet.store.connect import Store


async def note_device(store: Store, mac: str, fields: Mapping[str, str], dialect: str = "") -> None:
    """Write a device down as bootstrap does under an open policy."""
    await Admissions(store).decide("open", Asker(mac, "", dialect=dialect), fields)
