"""Firmware for tests: images, the folder that has them, and offers as jobs make them."""

import hashlib
import struct
from pathlib import Path

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.offers import DeviceOffer, Offers
from fleet.wire.firmware_offer import FirmwareOffer

SECRET = "5e" * 16


def image_of(version: str, size: int = 16_384) -> bytes:
    """Return an image that reports a version."""
    described = struct.pack("<II8x", 0xABCD5432, 0) + version.encode().ljust(32, b"\0")
    return b"\xe9" + bytes(31) + described + bytes(range(256)) * (size // 256)


def store_file(folder: Path, content: bytes) -> str:
    """Put a file where devices download from; return its name."""
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256(content).hexdigest()
    (folder / f"{name}.bin").write_bytes(content)
    return name


async def offer_firmware(
    store: Store,
    mac: str,
    version: str = "2.10.0",
    file: str = "ab" * 32,
    *,
    board: str = "board",
    force: bool = False,
    name: str = "7-1",
    until: int = 2**45,
) -> FirmwareOffer:
    """Offer firmware to a device that is known."""
    await store.ask(store.client.hset(store.keys.device(mac), "on", "1"))
    offer = FirmwareOffer(id=name, file=file, secret=SECRET, version=version, force=force)
    assert await Offers(store).put(2**40, [DeviceOffer(mac, offer, until, board)]) == set()
    return offer
