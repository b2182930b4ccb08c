"""Registers the mark of the requirements until pyproject.toml does."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "requirement(*ids): proves these rows of docs/protocol/*.md")
