"""The tests of this folder need an engine and our images, which `scripts/test --docker` makes."""

import os
from pathlib import Path

import pytest

WANTED = "CONTAINER_TESTS"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get(WANTED):
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="scripts/test --docker runs it, in containers"))
