import pytest

from fleet.ground.errors import ConfigError
from fleet.workbench.conformance.checks import GROUPS, select

COUNTS = {"O": 12, "A": 8, "M": 11, "H": 10, "C": 16, "V": 3}


def test_every_check_of_the_contract_is_there_once_and_in_order() -> None:
    ids = [check.id for check in select()]
    assert len(set(ids)) == len(ids)
    for letter, count in COUNTS.items():
        assert [id_ for id_ in ids if id_[0] == letter] == [f"{letter}{number}" for number in range(1, count + 1)]


def test_checks_are_chosen_by_group_and_by_id_in_any_case() -> None:
    assert [check.id for check in select(["h3", "M1"])] == ["M1", "H3"]
    assert {check.letter for check in select(["C", "h"])} == {"H", "C"}
    assert [check.id for check in select([" h "])] == [f"H{number}" for number in range(1, 11)]


def test_what_does_not_exist_is_an_error_that_names_the_groups() -> None:
    with pytest.raises(ConfigError, match=r"no check or group H99, Q; groups are O, A, M, H, U, D, S, C, V"):
        select(["H1", "h99", "Q"])


def test_every_check_has_a_sentence_and_a_limit() -> None:
    for group in GROUPS:
        for check in group.checks:
            assert check.title
            assert not check.title.endswith(".")
            assert check.letter == group.letter
            assert 0 < check.seconds <= 300
