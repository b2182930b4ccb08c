"""Values of fields: versions in their order."""

import pytest

from fleet.core.query.fields import version_number


def test_versions_are_ordered_by_their_numbers() -> None:
    versions = ["0.9", "2.4", "2.4.1", "2.4.10", "2.10", "10.0"]
    numbers = [version_number(version) or 0 for version in versions]
    assert numbers == sorted(set(numbers))
    assert version_number("2.5") == version_number("v2.5.0") == version_number("2.5.0.1")


@pytest.mark.parametrize("text", ["", "new", "2026-11-24", "2.5-rc1", "2..5", "1.2.3.4.5"])
def test_other_texts_are_no_versions(text: str) -> None:
    assert version_number(text) is None


def test_a_large_part_does_not_become_the_next_version() -> None:
    assert (version_number("1.999999999") is None) and (version_number("1.999999") or 0) < (version_number("2") or 0)
