"""The other gateway: which folder is taken for its checkout, and how devices sign in there."""

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.bench.logins import PeerLogins
from tests.benchmarks.sites import node_gateway

KEY = "a key"


async def test_a_checkout_without_its_packages_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.js").touch()
    with pytest.raises(ConfigError, match="npm install"):
        async with node_gateway(tmp_path):
            pytest.fail("it was started")


async def test_devices_sign_in_as_the_gateway_checks_it() -> None:
    credentials = await PeerLogins(1883, KEY).introduce("02:be:00:00:00:01")
    group, mac, client = credentials.client_id.split("@@@")
    assert (mac, len(client)) == ("02_be_00_00_00_01", 36)
    assert group.startswith("GID_")
    assert base64.b64decode(credentials.username).startswith(b"{")
    signed = hmac.new(KEY.encode(), f"{credentials.client_id}|{credentials.username}".encode(), hashlib.sha256)
    assert credentials.password == base64.b64encode(signed.digest()).decode()
