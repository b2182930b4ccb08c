"""Certificates on disk."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.core.finding import Finding
from fleet.ground.settings import load
from fleet.operations.doctor.ask_bootstrap import BootstrapReply
from fleet.operations.doctor.certificates import examine
from fleet.operations.doctor.site import open_site
from tests.support.certificates import Pki
from tests.support.own_certificate import write_certificate

NAME = "voice.test"


async def look(tmp_path: Path, now: datetime | None = None, **settings: Any) -> dict[str, Finding]:
    moment = now or datetime.now(UTC)
    async with open_site(load(data_dir=tmp_path, **settings), lambda: moment) as site:
        site.bootstrap.set_result(BootstrapReply())
        return {one.check: one async for one in examine(site)}


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "pki", NAME, "127.0.0.1")


async def test_a_good_pair_of_a_known_authority_is_good(tmp_path: Path, pki: Pki) -> None:
    found = await look(tmp_path, **pki.settings, public_host=NAME, tls_ca=str(pki.ca))
    assert {one.verdict for one in found.values()} == {"ok"}, found


async def test_a_private_authority_is_warned_about(tmp_path: Path, pki: Pki) -> None:
    found = await look(tmp_path, **pki.settings, public_host=NAME)
    assert found["certificates.chain"].verdict == "warning"
    assert "fullchain.pem" in found["certificates.chain"].advice


async def test_a_name_that_is_not_in_it_is_found(tmp_path: Path, pki: Pki) -> None:
    found = await look(tmp_path, **pki.settings, public_host="other.test", tls_ca=str(pki.ca))
    assert found["certificates.name"].verdict == "problem"
    assert "FLEET_PUBLIC_HOST" in found["certificates.name"].advice
    assert found["certificates.chain"].verdict == "warning"


async def test_another_certificates_key_is_found(tmp_path: Path, pki: Pki) -> None:
    _, key = pki.draft()
    shutil.copy(key, pki.key)
    found = await look(tmp_path, **pki.settings, public_host=NAME)
    assert found["certificates.file"].verdict == "problem"
    assert "FLEET_TLS_KEY" in found["certificates.file"].advice


@pytest.mark.parametrize(("days", "verdict"), [(-1, "problem"), (3, "warning"), (60, "ok")])
async def test_its_end_is_seen_coming(tmp_path: Path, days: int, verdict: str) -> None:
    pair = write_certificate(tmp_path, "192.0.2.1", datetime.now(UTC) + timedelta(days=days))
    assert (await look(tmp_path, **pair))["certificates.time"].verdict == verdict


async def test_one_that_is_not_valid_yet_points_to_the_clock(tmp_path: Path) -> None:
    pair = write_certificate(tmp_path, "192.0.2.1", datetime.now(UTC) + timedelta(days=60))
    found = await look(tmp_path, datetime.now(UTC) - timedelta(days=90), **pair)
    assert "clock" in found["certificates.time"].advice
