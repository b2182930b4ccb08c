import sys

import pytest

from fleet.workbench.local_servers import module_command


def test_a_module_is_run_by_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_command.module_command("fleet", "api") == [sys.executable, "-m", "fleet", "api"]
    monkeypatch.setattr(module_command, "through", ["another"])
    assert module_command.module_command("fleet", "api") == [sys.executable, "-m", "another", "fleet", "api"]
