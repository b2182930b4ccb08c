"""Check a device's firmware: is a newer one offered, and why does the device not take it?"""

from collections.abc import Iterator
from pathlib import Path

from fleet.adapters.files.firmware_images import FirmwareImages
from fleet.adapters.redis.devices.registry import MOST_OFFERS, OFFER_SECONDS
from fleet.adapters.redis.devices.view import DeviceView
from fleet.operations.doctor.finding import Finding, ok, problem, warning
from fleet.wire.firmware import is_board, parse_version

_CHECK = "device.firmware"


def examine_firmware(known: DeviceView, folder: Path | None, now: float) -> Iterator[Finding]:
    """Yield a finding if the server offers firmware.

    Args:
        known: The device.
        folder: FLEET_FIRMWARE_DIR.
        now: Seconds since 1970.
    """
    board, version = known.record.get("board", ""), known.record.get("fw", "")
    if folder is None or not version:
        return
    images = FirmwareImages(folder)
    try:
        images.look()
    except OSError as error:
        yield problem(_CHECK, f"{folder}: {error.strerror}", "Correct FLEET_FIRMWARE_DIR, or the rights of the folder")
        return
    running = parse_version(version)
    image = images.offer(board, running)
    if running is None:
        yield warning(_CHECK, f"its version {version} cannot be compared", "Install firmware with a version as 2.5.0")
    elif image is not None:
        yield _stale(known, image.name, now)
    elif is_board(board) and (folder / board).is_dir():
        yield from _refused(folder / board, images, board, version)
    else:
        yield ok(_CHECK, f"firmware {version}; {folder} has no folder for the board {board or 'unknown'}")


def _stale(known: DeviceView, offered: str, now: float) -> Finding:
    message = f"it runs firmware {known.record['fw']}, and {offered} is offered"
    if _offers(known, offered, now) >= MOST_OFFERS:
        advice = (
            f"It got this offer {MOST_OFFERS} times within a day and did not install it; the next one follows after "
            "that day. See its log: the image must be for its board and fit its partitions, and FLEET_HTTP_PUBLIC must "
            "lead it to the api"
        )
        return problem(_CHECK, f"{message}, but it does not take it", advice)
    return warning(_CHECK, message, "A device asks for firmware only when it starts: switch it off and on")


def _offers(known: DeviceView, offered: str, now: float) -> int:
    """Return how often the firmware was offered within a day, at most: each Client-Id is counted alone."""
    # `version seconds-since-1970 count`, as `fleet_offer` in functions.lua writes it.
    counts = [text.rsplit(" ", 2) for field, text in known.record.items() if field.startswith("fw:")]
    return max((int(one[2]) for one in counts if one[0] == offered and now - int(one[1]) < OFFER_SECONDS), default=0)


def _refused(folder: Path, images: FirmwareImages, board: str, version: str) -> Iterator[Finding]:
    """Yield what is wrong with images in a board's folder that are not offered."""
    if faults := images.faults(board):
        named = "; ".join(f"{name}: {fault}" for name, fault in faults.items())
        advice = (
            "Replace the image, or correct its name: that is its version, as it is inside. NAME.bin.sha256 must be "
            "there, as sha256sum writes it"
        )
        yield warning(_CHECK, f"firmware {version}; not offered from {folder}: {named}", advice)
    else:
        yield ok(_CHECK, f"firmware {version}, and no newer one is in {folder}")
