"""Whom simulated devices trust."""

import asyncio
import ssl
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.sim.network import https
from fleet.workbench.sim.network.https import load_trust, trusting
from tests.support.certificates import Pki


def test_a_private_authority_replaces_the_public_ones(tmp_path: Path) -> None:
    found = load_trust(Pki(tmp_path / "pki").ca)
    assert found is not None
    assert [dict(name[0] for name in one["subject"])["commonName"] for one in found.get_ca_certs()] == [
        "fleet development authority"
    ]
    assert load_trust(None) is None


def test_a_file_without_authorities_is_refused(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing")
    for path in (junk, tmp_path / "none.pem"):
        with pytest.raises(ConfigError, match=path.name):
            load_trust(path)


async def test_trust_reaches_the_tasks_of_its_block_and_no_others() -> None:
    own, seen = ssl.create_default_context(), []

    async def look() -> None:
        await asyncio.sleep(0)
        seen.append(https._TRUSTED.get())

    async with asyncio.TaskGroup() as group:
        with trusting(own):
            group.create_task(look())
            with trusting(None):
                group.create_task(look())
        group.create_task(look())
    assert seen == [own, own, None]
