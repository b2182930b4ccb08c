"""The settings of who may connect."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from fleet.settings.fields import canonical

Policy = Literal["open", "code", "closed"]
"""Which devices are served."""


class Identity(BaseModel):
    """Who may connect."""

    keys: SecretStr | None = Field(
        None,
        description="Keys that passwords derive from, `id:key,…`, the newest first. `fleet up` makes one and keeps it.",
    )
    keys_file: Path | None = Field(
        None, description="File with the keys in place of FLEET_KEYS; every process follows its changes."
    )
    activation: Policy = Field(
        "open",
        description="Which devices are served: `open` (every one), `code` (`fleet devices bind CODE`), `closed` (those "
        "bound before, and those of FLEET_SERIALS_FILE).",
    )
    serials_file: Path | None = Field(
        None, description="Serial numbers with burnt-in keys, a line `SERIAL KEY [MAC]` for each device."
    )
    revocations_file: Path | None = Field(
        None, description="File of revoked MACs that the api writes for the Mosquitto plugin."
    )
    firmware_dir: Path | None = Field(
        None,
        description="Folder with firmware that devices are offered: BOARD/VERSION.bin and BOARD/VERSION.bin.sha256.",
    )
    keepalive: int = Field(30, ge=10, le=240, description="MQTT keep-alive in seconds that devices are told.")
    refused_devices: str = Field(
        "", description="MACs, separated by commas, of devices whose hello is refused with an alert."
    )
    timezone_offset: int = Field(0, ge=-840, le=840, description="Minutes east of UTC that devices are told.")

    @field_validator("refused_devices")
    @classmethod
    def _are_macs(cls, value: str) -> str:
        return ",".join(canonical(mac) for mac in value.split(",") if mac.strip())
