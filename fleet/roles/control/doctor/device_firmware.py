"""Check a device's firmware: is one offered, and why does the device not take it?"""

from collections.abc import Iterator

from fleet.adapters.redis.devices.view import DeviceView
from fleet.core.finding import Finding, ok, problem, warning
from fleet.wire.firmware import parse_version

_CHECK = "device.firmware"


def examine_firmware(known: DeviceView, now: float) -> Iterator[Finding]:
    """Yield a finding about the firmware that a device runs, and about what a job offers it.

    Args:
        known: The device.
        now: Seconds since 1970.
    """
    record = known.record
    version, offered = record.get("fw", ""), record.get("ofv", "")
    if not version:
        return
    if parse_version(version) is None:
        yield warning(
            _CHECK, f"its version {version} cannot be compared", "Install firmware with a version as 2.5.0", case="odd"
        )
    elif not offered or offered == version or float(record.get("oft", "0")) < now * 1000:
        yield ok(_CHECK, f"firmware {version}", case="known")
    else:
        yield _stale(record.get("of", ""), version, offered, taken="ofk" in record, times=int(record.get("ofn", "0")))


def _stale(offer: str, version: str, offered: str, *, taken: bool, times: int) -> Finding:
    message = f"it runs firmware {version}, and job {offer.partition('-')[0]} offers {offered}"
    if taken:
        advice = "It has begun to download; if it comes back as it was, the image does not run: see its log"
        return warning(_CHECK, message, advice, case="taken")
    if times:
        advice = "FLEET_HTTP_PUBLIC or FLEET_FIRMWARE_URL must lead the device to the image, without a redirect"
        return problem(_CHECK, f"{message}, but it does not take it", advice, case="refused")
    return warning(
        _CHECK, message, "A device asks for firmware only when it starts: switch it off and on", case="offered"
    )
