"""Every product file has a unit test of its own, or stands with its reason in without_twin.toml."""

import tomllib
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
FLEET = TESTS.parent / "fleet"
GROUPS = tomllib.loads((TESTS / "without_twin.toml").read_text(encoding="utf-8"))["group"]
LISTED = Counter(path for group in GROUPS for path in group["files"])
PRODUCT = {
    path.relative_to(FLEET).as_posix()
    for path in FLEET.rglob("*.py")
    if path.name != "__init__.py" and "workbench" not in path.parts
}


def has_twin(path: str) -> bool:
    return (TESTS / "unit" / Path(path).parent / f"test_{Path(path).name}").is_file()


def test_every_file_has_a_unit_test_or_a_reason() -> None:
    assert sorted(path for path in PRODUCT if not has_twin(path) and path not in LISTED) == []


def test_the_list_has_no_file_that_is_gone_or_has_a_test_or_stands_there_twice() -> None:
    assert sorted(path for path in LISTED if path not in PRODUCT) == []
    assert sorted(path for path in LISTED if has_twin(path)) == []
    assert [path for path, times in LISTED.items() if times > 1] == []


def test_every_reason_names_tests_that_exist() -> None:
    for group in GROUPS:
        assert group["reason"].endswith(".") and group["guards"] and group["files"], group
        missing = [path for path in group["guards"] if not (TESTS.parent / path).is_file()]
        assert missing == [], group["reason"]
