"""Whatever a part of the examination does, the others are told, and the doctor ends in time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.core.finding import Finding, Findings, ok
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import load
from fleet.operations.doctor import command, examination
from fleet.operations.doctor.examination import PARTS, examine
from fleet.operations.doctor.run import choose_parts
from fleet.operations.doctor.site import SiteUnderTest, open_site
from tests.support.ports import free_port


async def well(site: SiteUnderTest) -> Findings:
    yield ok("well.done", "yes")


async def crash(site: SiteUnderTest) -> Findings:
    yield ok("crash.before", "yes")
    raise ZeroDivisionError


async def hang(site: SiteUnderTest) -> Findings:
    yield ok("hang.before", "yes")
    await asyncio.Event().wait()


async def lose(site: SiteUnderTest) -> Findings:
    yield ok("lose.before", "yes")
    raise Unavailable("gone")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[SiteUnderTest]:
    # Somebody's api may be at the usual port of the machine on which this runs.
    async with open_site(load(data_dir=tmp_path, http_port=free_port())) as opened:
        yield opened


def put(monkeypatch: pytest.MonkeyPatch, **parts: object) -> None:
    monkeypatch.setattr(examination, "PARTS", {name: (part, 0.05) for name, part in parts.items()})


async def test_a_part_that_fails_or_hangs_spoils_nothing(site: SiteUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, api=well, crash=crash, hang=hang, lose=lose)
    async with asyncio.timeout(10):
        found = {one.check: one for one in await examine(site)}
    assert {"well.done", "crash.before", "hang.before", "lose.before"} < set(found)
    assert found["crash.unfinished"].verdict == "problem"
    assert "0.05 s" in found["hang.unfinished"].message
    assert found["lose.unfinished"].message == "gone"


async def test_only_what_is_wanted_is_told(site: SiteUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, api=well, crash=crash)
    assert [one.check for one in await examine(site, frozenset({"crash"}))] == ["crash.before", "crash.unfinished"]


async def test_without_any_setting_nothing_is_wrong_and_it_is_said_why(site: SiteUnderTest) -> None:
    async with asyncio.timeout(60):
        found: list[Finding] = await examine(site, frozenset(PARTS) - {"speech"})
    told = {one.check: one for one in found}
    assert not [one for one in found if one.verdict in ("problem", "wrong")]
    for check in ("settings.keys", "broker.reach", "redis.reach", "models.llm", "certificates.file"):
        assert told[check].verdict == "skipped", told[check]
    assert "fleet up" in told["redis.reach"].message


def test_a_part_that_is_none_is_refused() -> None:
    assert choose_parts(" redis, broker ,") == {"redis", "broker"}
    with pytest.raises(ConfigError, match="choose from settings"):
        choose_parts("redis,nonsense")


def test_the_command_names_all_parts() -> None:
    assert set(command.PARTS) == set(PARTS)
