"""One control process for a file of SQLite."""

import os
from pathlib import Path

import pytest

from fleet.adapters.sql.sqlite_owner import owning
from fleet.ground.errors import ConfigError


def test_a_second_process_is_refused_and_told_who_has_the_file(tmp_path: Path) -> None:
    database = tmp_path / "new" / "fleet.db"
    # A lock belongs to the opened file, so a second opening in this process stands for another process.
    refused = pytest.raises(ConfigError, match=f"process {os.getpid()} uses .*fleet.db; more than one needs")
    with owning(database), refused:
        owning(database).__enter__()
    with owning(database):
        pass


def test_a_link_leads_to_the_same_lock(tmp_path: Path) -> None:
    database, link = tmp_path / "fleet.db", tmp_path / "links" / "link.db"
    link.parent.mkdir()
    link.symlink_to(database)
    with owning(database), pytest.raises(ConfigError, match="more than one needs"):
        owning(link).__enter__()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot write"), owning(tmp_path / "file" / "fleet.db"):
        pass
