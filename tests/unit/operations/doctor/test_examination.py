"""Whatever a part of the examination does, the others are told, and the doctor ends in time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import load
from fleet.operations.doctor import command, examination
from fleet.operations.doctor.case import Case, open_case
from fleet.operations.doctor.consultation import choose_parts
from fleet.operations.doctor.examination import PARTS, examine
from fleet.operations.doctor.finding import Finding, Findings, ok


async def well(case: Case) -> Findings:
    yield ok("well.done", "yes")


async def crash(case: Case) -> Findings:
    yield ok("crash.before", "yes")
    raise ZeroDivisionError


async def hang(case: Case) -> Findings:
    yield ok("hang.before", "yes")
    await asyncio.Event().wait()


async def lose(case: Case) -> Findings:
    yield ok("lose.before", "yes")
    raise Unavailable("gone")


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[Case]:
    async with open_case(load(data_dir=tmp_path)) as opened:
        yield opened


def put(monkeypatch: pytest.MonkeyPatch, **parts: object) -> None:
    monkeypatch.setattr(examination, "PARTS", {name: (part, 0.05) for name, part in parts.items()})


async def test_a_part_that_fails_or_hangs_spoils_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, api=well, crash=crash, hang=hang, lose=lose)
    async with asyncio.timeout(10):
        found = {one.check: one for one in await examine(case)}
    assert {"well.done", "crash.before", "hang.before", "lose.before"} < set(found)
    assert found["crash.unfinished"].verdict == "problem"
    assert "0.05 s" in found["hang.unfinished"].told
    assert found["lose.unfinished"].told == "gone"


async def test_only_what_is_wanted_is_told(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, api=well, crash=crash)
    assert [one.check for one in await examine(case, frozenset({"crash"}))] == ["crash.before", "crash.unfinished"]


async def test_without_any_setting_nothing_is_wrong_and_it_is_said_why(case: Case) -> None:
    async with asyncio.timeout(60):
        found: list[Finding] = await examine(case, frozenset(PARTS) - {"speech"})
    told = {one.check: one for one in found}
    assert not [one for one in found if one.verdict in ("problem", "wrong")]
    for check in ("settings.keys", "broker.reach", "redis.reach", "models.llm", "certificates.file"):
        assert told[check].verdict == "skipped", told[check]
    assert "fleet up" in told["redis.reach"].told


def test_a_part_that_is_none_is_refused() -> None:
    assert choose_parts(" redis, broker ,") == {"redis", "broker"}
    with pytest.raises(ConfigError, match="choose from settings"):
        choose_parts("redis,nonsense")


def test_the_command_names_all_parts() -> None:
    assert set(command.PARTS) == set(PARTS)
