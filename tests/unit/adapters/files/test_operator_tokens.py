from pathlib import Path

import pytest

from fleet.adapters.files.operator_tokens import DEVICES_INPUT, OperatorTokens, digest_of
from fleet.ground.errors import ConfigError

INPUT = frozenset({DEVICES_INPUT})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "tokens"


def test_a_token_proves_its_operator_and_is_kept_nowhere(path: Path) -> None:
    tokens = OperatorTokens(path)
    token = tokens.add("anna", INPUT)
    found = tokens.find(token)
    assert found
    assert (found.name, found.scopes) == ("anna", INPUT)
    assert token not in path.read_text()
    assert digest_of(token) in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_tokens_differ_and_others_count_for_nobody(path: Path) -> None:
    tokens = OperatorTokens(path)
    one, two = tokens.add("", INPUT), tokens.add("", INPUT)
    assert one != two
    assert [operator.name for operator in tokens.read()] == ["operator-1", "operator-2"]
    for wrong in ("", "x", one[:-1], one + "x", digest_of(one), "\ud800", "é"):
        assert tokens.find(wrong) is None


def test_another_process_sees_every_change(path: Path) -> None:
    writer, reader = OperatorTokens(path), OperatorTokens(path)
    assert reader.find("x") is None
    token = writer.add("anna", INPUT)
    assert reader.find(token)
    assert writer.remove("anna")
    assert not writer.remove("anna")
    assert reader.find(token) is None
    path.unlink()
    assert reader.read() == ()


@pytest.mark.parametrize(
    ("name", "scopes"), [("a b", INPUT), ("anna", frozenset()), ("anna", frozenset({"all:things"}))]
)
def test_wrong_operators_are_refused(path: Path, name: str, scopes: frozenset[str]) -> None:
    with pytest.raises(ConfigError):
        OperatorTokens(path).add(name, scopes)


def test_a_name_is_given_once(path: Path) -> None:
    OperatorTokens(path).add("anna", INPUT)
    with pytest.raises(ConfigError, match="already"):
        OperatorTokens(path).add("anna", INPUT)


def test_while_the_file_is_wrong_nobodys_token_counts(path: Path) -> None:
    tokens = OperatorTokens(path)
    token = tokens.add("anna", INPUT)
    good = path.read_text()
    path.write_text(good + "junk\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="line 2"):
            tokens.find(token)
    path.write_text(f"# comment\n\n{good}")
    assert tokens.find(token)
