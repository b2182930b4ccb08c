"""The identity of a device, and what it sends about itself at bootstrap (contract 1.1)."""

import json
import uuid
from dataclasses import dataclass

from pydantic import JsonValue

from fleet.workbench.sim.profiles.profile import Profile

JSON_TIGHT = (",", ":")


@dataclass(frozen=True, slots=True)
class Identity:
    """What distinguishes a device: its canonical MAC, and a UUID made at first boot.

    Devices with a serial number burnt in prove at activation that they know its key.
    """

    mac: str
    client: str
    ssid: str = "home"
    serial: str = ""
    key: bytes = b""

    @classmethod
    def of(cls, mac: str, ssid: str = "home", client: str = "") -> "Identity":
        """Return an identity; without a UUID of its own that follows from the MAC, so that it is kept over restarts."""
        return cls(mac, client or str(uuid.uuid5(uuid.NAMESPACE_OID, mac)), ssid)


def headers(identity: Identity, profile: Profile) -> dict[str, str]:
    """Return what bootstrap and activation requests carry; the profile's version is the one that runs."""
    sent = {
        "Device-Id": identity.mac,
        "Client-Id": identity.client,
        "User-Agent": f"{profile.board}/{'py-xiaozhi-' if profile.is_py_xiaozhi else ''}{profile.version}",
        "Accept-Language": profile.language,
        "Content-Type": "application/json",
        "Connection": "close",
    }
    if not profile.is_py_xiaozhi:
        sent["Activation-Version"] = "2" if identity.serial else "1"
    if identity.serial:
        sent["Serial-Number"] = identity.serial
    return sent


def system_info(identity: Identity, profile: Profile) -> str:
    """Return the request's body: put together by hand, the SSID as it is, as firmware does.

    A byte of the SSID that is no UTF-8 stands in the text as Python's `surrogateescape` has it.
    """
    if profile.is_py_xiaozhi:
        return json.dumps(_brief(identity, profile), separators=JSON_TIGHT)
    whole = json.dumps(_full(identity, profile), separators=JSON_TIGHT)
    return f'{whole[:-1]},"board":{_board(identity, profile)}}}'


def _brief(identity: Identity, profile: Profile) -> dict[str, JsonValue]:
    return {
        "application": {"version": profile.version, "elf_sha256": "6b1d0f4a"},
        "board": {"type": profile.board, "name": "py-xiaozhi", "ip": "192.168.1.77", "mac": identity.mac},
    }


def _full(identity: Identity, profile: Profile) -> dict[str, JsonValue]:
    return {
        "version": 2,
        "language": profile.language,
        "flash_size": 16_777_216,
        "minimum_free_heap_size": "7952340" if profile.heap is None else "61240",
        "mac_address": identity.mac,
        "uuid": identity.client,
        "chip_model_name": profile.chip,
        "chip_info": {"model": 9, "cores": 2, "revision": 2, "features": 18},
        "application": {
            "name": "xiaozhi",
            "version": profile.version,
            "compile_time": "Aug  8 2026T10:00:00Z",
            "idf_version": "v5.5.2",
            "elf_sha256": "6b1d0f4a",
        },
        "partition_table": [
            {"label": "nvs", "type": 1, "subtype": 2, "address": 36_864, "size": 16_384},
            {"label": "ota_0", "type": 0, "subtype": 16, "address": 131_072, "size": 4_128_768},
        ],
        "ota": {"label": "ota_0"},
        "display": {"monochrome": False, "width": 240, "height": 240},
    }


def _board(identity: Identity, profile: Profile) -> str:
    front = f'{{"type":"{profile.board_type}","name":"{profile.board}",'
    if profile.cellular:
        return front + (
            '"revision":"ML307R-DC_V1.2.5","carrier":"CHINA MOBILE","csq":"23","imei":"860000000000017",'
            '"iccid":"89860000000000000017","cereg":{"stat":1,"tac":"1A2B","ci":"0C3D4E5F","AcT":7}}'
        )
    return front + f'"ssid":"{identity.ssid}","rssi":-52,"channel":6,"ip":"192.168.1.77","mac":"{identity.mac}"}}'
