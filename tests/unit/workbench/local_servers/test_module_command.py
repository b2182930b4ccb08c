import sys

import pytest

from fleet.workbench.local_servers import module_command
from tests.support.patient_module import COMMAND


def test_a_module_is_run_by_this_python_or_by_what_stands_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module_command.module_command("fleet", "api") == [sys.executable, "-m", "fleet", "api"]
    monkeypatch.setattr(module_command, "RUN_MODULE", COMMAND)
    through = ["-m", "tests.support.patient_module", "fleet", "api"]
    assert module_command.module_command("fleet", "api") == [sys.executable, *through]
