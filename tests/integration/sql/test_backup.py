import os
from pathlib import Path

import pytest

from fleet.adapters.sql.agent_rows import AgentRows
from fleet.adapters.sql.backup import back_up, restore
from fleet.adapters.sql.open import open_database
from fleet.ground.errors import ConfigError


async def test_a_copy_that_was_made_while_control_ran_can_be_put_back_while_it_does_not(tmp_path: Path) -> None:
    text, copy = f"sqlite:///{tmp_path / 'control.db'}", tmp_path / "copy.db"
    async with open_database(text) as database:
        await AgentRows(database, 1).add("ann", "", {}, 1)
        back_up(text, copy)
        await AgentRows(database, 1).add("bob", "", {}, 1)
        with pytest.raises(ConfigError, match=r"process .* uses"):
            restore(text, copy)
    restore(text, copy)
    async with open_database(text) as database:
        assert [row.name for row in await AgentRows(database, 1).page(0, 9)] == ["ann"]
    assert copy.stat().st_mode & 0o077 == 0


async def test_only_the_user_of_control_reads_the_files_of_the_database(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    file = folder / "control.db"

    async def modes(agent: str) -> dict[str, int]:
        async with open_database(f"sqlite:///{file}") as database:
            await AgentRows(database, 1).add(agent, "", {}, 1)
            return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}

    names = ("control.db", "control.db-shm", "control.db-wal", "control.db.lock")
    private = dict.fromkeys(names, 0o600)
    old = os.umask(0o022)
    try:
        assert await modes("ann") == private
        for path in folder.iterdir():
            path.chmod(0o644)
        (folder / "control.db-wal").touch(0o644)
        assert await modes("bob") == private, "files of an earlier fleet"
    finally:
        os.umask(old)


def test_what_is_no_copy_or_no_file_is_refused(tmp_path: Path) -> None:
    text, other = f"sqlite:///{tmp_path / 'control.db'}", tmp_path / "other"
    with pytest.raises(ConfigError, match="no database"):
        back_up(text, other)
    other.write_text("hello")
    with pytest.raises(ConfigError, match="no copy"):
        restore(text, other)
    with pytest.raises(ConfigError, match="pg_dump"):
        back_up("postgresql://127.0.0.1/fleet", other)
