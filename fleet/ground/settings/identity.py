"""The settings of credentials and admission of devices."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import SecretStr, field_validator

from fleet.ground.local_time import machine_zone, offset
from fleet.ground.settings.fields import ALL_ROLES, SettingGroup, canonical_mac, setting

Policy = Literal["open", "first", "code", "closed"]
"""Which devices the server admits."""


class IdentityGroup(SettingGroup):
    """Credentials and admission of devices, and what bootstrap sends to them."""

    title = "Devices and keys"

    keys: SecretStr | None = setting(
        None,
        ALL_ROLES,
        syntax="id:key,…",
        unset="none, and only `fleet up` starts: it makes one and stores it in FLEET_DATA_DIR",
        equal=True,
    )
    """Keys from which the passwords of devices and roles derive, the newest first: new passwords use the first key,
    passwords of all keys are valid. A key has 16 characters or more. The broker's plugin needs the same keys. Set this
    or FLEET_KEYS_FILE, not both. The gateway needs keys only for WebSocket clients that are devices."""
    keys_file: Path | None = setting(None, ALL_ROLES, syntax="file", equal=True, masked="file")
    """File with the keys, one `id key` a line, instead of FLEET_KEYS. Changes take effect without a restart; `fleet
    keys rotate` needs such a file."""
    secret_keys: SecretStr | None = setting(
        None,
        ("worker", "edge", "gateway", "control"),
        syntax="32 bytes in URL-safe base64, several separated by commas",
        unset="none, and providers of the catalogue have no keys; `fleet up` makes one and stores it in FLEET_DATA_DIR",
        equal=True,
    )
    """Keys that encrypt the API keys of the providers that agents name, the newest first: the first encrypts, all
    decrypt. `fleet up` makes one in FLEET_DATA_DIR/secret_keys; docs/operating/agents.md says how to make one."""
    activation: Policy = setting("first", ("api", "gateway"), equal=True)
    """Policy: which devices the server admits. `first`: all; the first Client-Id that sends a MAC becomes its owner,
    and another Client-Id with that MAC shows a code and waits for an operator (`fleet devices claims`). `code`: devices
    that an operator has bound with the code on their screen (`fleet devices bind CODE`). `closed`: devices that an
    operator has bound by MAC, and those of FLEET_SERIALS_FILE. `open`, for laboratories: all, and every request gets
    credentials for any MAC. Devices that were connected before a stricter policy began stay admitted."""
    renewal_days: float = setting(7.0, ("api", "control"), unit="days", ge=0, le=365)
    """How long old passwords stay valid after a stricter policy began, after a device got another owner, or after
    `fleet devices renew`. Devices get a new password only when they start; the server asks devices that are online to
    restart. With `--now` the commands refuse old passwords at once."""
    serials_file: Path | None = setting(None, ("api",), syntax="file", masked="file")
    """Serial numbers and keys that are burnt into devices, one `SERIAL KEY [MAC]` a line, for activation by key."""
    revocations_file: Path | None = setting(
        None, ("api",), syntax="file", unset="not written: the plugin does not check revocations"
    )
    """File of revoked devices and valid generations of passwords, which the api writes for the Mosquitto plugin (its
    `revoked_file`). fleet needs write access to its folder, the broker read access."""
    firmware_dir: Path | None = setting(
        None, ("api", "control"), syntax="folder", unset="the folder firmware in FLEET_DATA_DIR", equal=True
    )
    """Images of firmware and assets that were uploaded to control (`fleet firmware add`); devices download them from
    the api. On several machines this is a folder that control and api share."""
    firmware_url: str | None = setting(
        None, ("api",), syntax="http(s)://host[:port][/path]", unset="devices download from the api", equal=True
    )
    """Where devices download firmware in place of the api, such as a CDN: FLEET_FIRMWARE_URL/SHA256.bin is a file of
    FLEET_FIRMWARE_DIR. It must answer with 200 at once, without a redirect, and with a header spelled
    `Content-Length`."""
    keepalive: int = setting(30, ("api",), unit="seconds", ge=10, le=240)
    """MQTT keep-alive of devices, sent to them at bootstrap. A lower value lets the broker detect a lost device
    sooner."""
    refused_devices: str = setting("", ("worker",), syntax="MACs, separated by commas", unset="none")
    """Devices whose hello the server refuses, with an alert on their display."""
    timezone: str = setting(
        machine_zone,
        ("worker", "api", "gateway", "control"),
        variable="FLEET_TIMEZONE",
        also="FLEET_TIMEZONE_OFFSET",
        syntax="name such as `Asia/Shanghai`, or minutes east of UTC",
        unset="the machine's time zone",
        equal=True,
    )
    """Time zone of devices and of the model. `fleet devices timezone` overrides it for a device."""

    @field_validator("timezone", mode="before")
    @classmethod
    def _is_a_zone(cls, value: object) -> str:
        if offset(str(value), datetime.now(UTC)) is None:
            raise ValueError(
                f"{str(value)!r} is no time zone; use a name such as Asia/Shanghai, or minutes east of UTC"
            )
        return str(value)

    @field_validator("firmware_url")
    @classmethod
    def _is_folder_of_images(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port][/path] or https://host[:port][/path]")
        return value.rstrip("/") if value else value

    @field_validator("refused_devices")
    @classmethod
    def _are_macs(cls, value: str) -> str:
        return ",".join(canonical_mac(mac) for mac in value.split(",") if mac.strip())
