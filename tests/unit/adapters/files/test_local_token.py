from pathlib import Path

from fleet.adapters.files.local_token import is_local_token, make_local_token, read_local_token


def test_the_newest_token_is_read_by_its_user_only(tmp_path: Path) -> None:
    assert read_local_token(tmp_path) == ""
    first, second = make_local_token(tmp_path / "data"), make_local_token(tmp_path / "data")
    assert read_local_token(tmp_path / "data") == second != first
    [file] = (tmp_path / "data").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_an_empty_token_is_nobodys() -> None:
    assert is_local_token("flt_x", "flt_x")
    assert not is_local_token("", "") and not is_local_token("flt_x", "") and not is_local_token("\udc80", "flt_x")
