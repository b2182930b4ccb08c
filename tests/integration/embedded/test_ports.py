import subprocess
import sys

import pytest

from fleet.ground.errors import Unavailable
from fleet.run.embedded import child

CHOOSE = (
    "from fleet.run.embedded import child; child._PORTS = range({0}, {0} + 1); print(child.free_port(), flush=True)"
)


def test_a_port_is_chosen_once_while_the_process_lives_that_chose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    port = child.free_port()
    monkeypatch.setattr(child, "_PORTS", range(port, port + 1))
    monkeypatch.setattr(child.random, "sample", lambda ports, count: list(ports))
    with pytest.raises(Unavailable, match="no free loopback port"):
        child.free_port()


def test_a_port_is_free_again_after_the_process_that_chose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child.random, "sample", lambda ports, count: list(ports))
    code = f"import random; random.sample = lambda ports, count: list(ports); {CHOOSE}; input()"
    for port in range(31_999, 20_000, -1):
        words = [sys.executable, "-c", code.format(port)]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            chosen = other.stdout.readline() if other.stdout else ""
            if chosen:
                monkeypatch.setattr(child, "_PORTS", range(port, port + 1))
                with pytest.raises(Unavailable):
                    child.free_port()
            other.communicate("\n", timeout=240)
        if chosen:
            assert child.free_port() == port
            return
    pytest.fail("no port is free")
