"""The settings of who may connect."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, SecretStr, field_validator

from fleet.ground.settings.fields import EVERY, canonical, setting

Policy = Literal["open", "first", "code", "closed"]
"""Which devices are served."""


class Identity(BaseModel):
    """Who may connect, and what devices are told of it at bootstrap."""

    keys: SecretStr | None = setting(
        None,
        "Keys that all passwords of devices and roles derive from, the newest first: the first one signs, all are "
        "accepted. A key has 16 characters or more. The broker's plugin needs the same ones. Instead of it: "
        "FLEET_KEYS_FILE, never both. The gateway needs keys only for WebSocket clients that are devices.",
        EVERY,
        form="id:key,…",
        without="none, and only `fleet up` starts: it makes one and keeps it in FLEET_DATA_DIR",
        same=True,
    )
    keys_file: Path | None = setting(
        None,
        "File with the keys, `id key` a line, in place of FLEET_KEYS. Its changes count without a restart, so "
        "`fleet keys rotate` needs it.",
        EVERY,
        form="file",
        same=True,
        hidden="file",
    )
    activation: Policy = setting(
        "first",
        "Which devices are served. `first`: every one, and whoever first asks with a MAC owns it; another Client-Id "
        "with that MAC shows a code and waits for an operator (`fleet devices claims`). `code`: those that an operator "
        "has bound with the code that they show (`fleet devices bind CODE`). `closed`: those bound before by their "
        "MAC, and those of FLEET_SERIALS_FILE. `open`, for laboratories: every one, and anybody gets credentials for "
        "any MAC. Devices that were connected before a stricter policy began stay admitted.",
        ("api",),
        same=True,
    )
    renewal_days: float = setting(
        7.0,
        "How long an old password still counts, after a stricter policy began, a device got another owner, or "
        "`fleet devices renew` asked for another one. Devices fetch a password only when they start; those that are "
        "online are asked to restart. With `--now` the commands do not wait.",
        ("api",),
        unit="days",
        ge=0,
        le=365,
    )
    serials_file: Path | None = setting(
        None,
        "Serial numbers and keys that were burnt into devices, `SERIAL KEY [MAC]` a line; such a device proves itself.",
        ("api",),
        form="file",
        hidden="file",
    )
    revocations_file: Path | None = setting(
        None,
        "Where the api writes for the Mosquitto plugin (its `revoked_file`) which devices are revoked and which "
        "generations of passwords count, in a folder in which fleet may write and which the broker may read.",
        ("api",),
        form="file",
        without="not written: the plugin refuses nobody for that reason",
    )
    firmware_dir: Path | None = setting(
        None,
        "Firmware that devices are offered: BOARD/VERSION.bin with BOARD/VERSION.bin.sha256. A file BOARD/force with "
        "a version brings all devices of the board there.",
        ("api",),
        form="folder",
        without="no firmware is offered",
    )
    keepalive: int = setting(
        30,
        "MQTT keep-alive that devices are told: how soon the broker misses one that is gone.",
        ("api",),
        unit="seconds",
        ge=10,
        le=240,
    )
    refused_devices: str = setting(
        "",
        "Devices whose hello is refused, with an alert on their display.",
        ("worker",),
        form="MACs, separated by commas",
        without="none",
    )
    timezone_offset: int = setting(
        0,
        "Time zone that devices and the model are told, east of UTC. A device with a time zone of its own "
        "(`fleet devices timezone`) has that.",
        ("worker", "api", "gateway"),
        unit="minutes",
        ge=-840,
        le=840,
        same=True,
    )

    @field_validator("refused_devices")
    @classmethod
    def _are_macs(cls, value: str) -> str:
        return ",".join(canonical(mac) for mac in value.split(",") if mac.strip())
