"""`fleet accounts`, with a running control."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fleet.adapters.sql.database import Database, database_url
from tests.support.command_line import CommandLine, command_line
from tests.support.console_browser import PASSWORD, console_browser
from tests.support.control_operator import Operator
from tests.support.control_server import control_stage
from tests.support.memory_store import memory_store
from tests.support.migrated import migrated_sqlite


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.fixture
async def operator(fleet: CommandLine, tmp_path: Path) -> AsyncIterator[Operator]:
    database = Database(database_url(await migrated_sqlite(tmp_path / "control.db")))
    store = await memory_store()
    async with control_stage(database, store, tmp_path) as stage:
        yield Operator(fleet, stage)
    await store.close()
    await database.close()


async def test_accounts_are_made_changed_and_deleted_by_commands(operator: Operator, tmp_path: Path) -> None:
    secret, another = tmp_path / "secret", tmp_path / "another"
    secret.write_text(f"{PASSWORD}\n")
    another.write_text("another horse battery\n")
    assert await operator.run("accounts", "new", "ling", "operator", "--password-file", str(secret)) == (
        "ling is made, with the role operator\n"
    )
    async with console_browser(operator.stage) as browser:

        async def may() -> bool:
            return (await browser.ask("GET /v1/me")).status_code == 200

        assert (await browser.sign_in("ling")).json()["role"] == "operator"
        assert (await operator.row("accounts", "role", "ling", "viewer"))["role"] == "viewer"
        assert not await may(), "another role ends the sign-in"
        await browser.sign_in("ling")
        await operator.run("accounts", "sign-out", "ling")
        assert not await may()
        await operator.run("accounts", "password", "ling", "--password-file", str(another))
        assert (await browser.sign_in("ling")).status_code == 403
        assert (await browser.sign_in("ling", "another horse battery")).status_code == 201
        assert (await operator.row("accounts", "disable", "ling"))["disabled"]
        assert not await may()
        await operator.run("accounts", "enable", "ling")
        (listed,) = await operator.rows("accounts", "list")
        assert (listed["name"], listed["role"], listed["disabled"]) == ("ling", "viewer", False)
        assert "ling" in await operator.run("accounts", "list")
        assert await operator.run("accounts", "remove", "ling") == "ling is deleted\n"
        assert (await browser.sign_in("ling", "another horse battery")).status_code == 403


async def test_commands_say_what_is_wrong(operator: Operator, tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text("short\n")
    told = await operator.run("accounts", "new", "ling", "owner", "--password-file", str(short), code=2)
    assert "password" in told and "at least 12" in told and "short" not in told.replace(str(short), "")
    assert "name a file with the password" in await operator.run("accounts", "new", "ling", "owner", code=2)
    assert "there is no account ling" in await operator.run("accounts", "remove", "ling", code=2)
