import pytest

from tests.chaos import members


@pytest.fixture(autouse=True)
def _modules_are_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the roles: `scripts/chaos` starts each anew."""
    monkeypatch.setattr(members, "START", members.fork_modules)
