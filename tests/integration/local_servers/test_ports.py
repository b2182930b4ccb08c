import os
import socket
import tempfile
from pathlib import Path

import pytest

from fleet.workbench.local_servers.ports import LOOPBACK, accepts, choose, claim


def taken(kind: socket.SocketKind) -> socket.socket:
    other = socket.socket(socket.AF_INET, kind)
    other.bind((LOOPBACK, 0))
    return other


def test_a_free_port_is_taken_as_it_is_wanted() -> None:
    port = choose()  # of those that no other process chooses now, and that the kernel gives to no connection
    assert choose(port) == port


def test_a_busy_port_gives_way_to_a_free_one() -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with taken(kind) as other:
            port = int(other.getsockname()[1])
            found = choose(port, kind)
            assert found != port
            with socket.socket(socket.AF_INET, kind) as mine:
                mine.bind((LOOPBACK, found))


def test_a_port_accepts_only_while_somebody_listens() -> None:
    with taken(socket.SOCK_STREAM) as other:
        port = int(other.getsockname()[1])
        assert not accepts(port)
        other.listen()
        assert accepts(port)


def test_a_chosen_port_is_nobody_elses_for_ten_minutes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert [claim(10_000), claim(10_000), claim(10_001)] == [True, False, True]
    [mark, _] = sorted(tmp_path.glob("*/*"))
    long_ago = mark.stat().st_mtime - 601
    os.utime(mark, (long_ago, long_ago))
    assert [claim(10_000), claim(10_000)] == [True, False]
