"""`fleet up` as a process: it ends cleanly, starts again, and says what is wrong."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, command_line
from tests.support.fleet_process import START_SECONDS, FleetProcess, children, fleet_up
from tests.support.ports import free_port

# Nobody speaks here, so that no speech engine needs to be loaded, and no demo model, which takes a second.
NOWHERE = {f"{model}_BASE_URL": "http://127.0.0.1:9/v1" for model in ("ASR", "TTS", "LLM")} | {"LLM_MODEL": "none"}


def refuse(directory: Path, **settings: str) -> str:
    """Start a process that must not come up; return what it said."""
    process = FleetProcess(directory, forked=True, **NOWHERE, **settings)
    process.start()
    try:
        assert process.wait(START_SECONDS) == 2
    finally:
        process.discard()
    return "\n".join(process.errors)


def test_ctrl_c_ends_everything_and_a_second_run_works(tmp_path: Path) -> None:
    for _ in range(2):
        with fleet_up(tmp_path, **NOWHERE) as process:
            offspring = children(process.pid)
            assert offspring
            assert process.interrupt() == 0
            assert not any(Path(f"/proc/{pid}").exists() for pid in offspring)
            assert process.errors == []


def test_a_taken_port_is_named_with_its_setting(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        said = refuse(tmp_path, FLEET_HTTP_PORT=port)
    assert f"port {port}" in said
    assert "FLEET_HTTP_PORT" in said


@pytest.fixture(scope="module")
def fleet() -> Iterator[CommandLine]:
    with command_line() as kept:
        yield kept


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"FLEET_SHRADS": "3"}, "FLEET_SHRADS"),
        ({"FLEET_SHARDS": "3"}, "FLEET_SHARDS"),
        ({"FLEET_MQTT_URL": "http://x"}, "mqtt://"),
        ({"FLEET_KEYS": "k1:short"}, "FLEET_KEYS"),
        ({"FLEET_CONFIG": "/nowhere.toml"}, "/nowhere.toml"),
    ],
)
def test_a_wrong_setting_is_named(fleet: CommandLine, tmp_path: Path, settings: dict[str, str], named: str) -> None:
    # Others may use the usual ports meanwhile.
    ports = dict.fromkeys(("FLEET_UDP_PORT", "FLEET_HTTP_PORT", "FLEET_MQTT_PORT", "CLOUD_PORT"), "0")
    done = fleet.run("up", FLEET_DATA_DIR=str(tmp_path), **ports, **settings)
    assert done.returncode == 2
    assert named in done.stderr


def test_it_shows_what_it_listens_on_and_metrics_are_for_this_machine(tmp_path: Path) -> None:
    port = free_port()
    with fleet_up(tmp_path, forked=True, FLEET_METRICS_PORT=str(port), **NOWHERE) as process:
        shown = process.shown
        with socket.create_connection(("127.0.0.1", port), 240):
            pass
        # Who listens everywhere answers here too.
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), 240):
            pass
        assert process.errors == []
    assert shown.isascii()
    [row] = [line for line in shown.splitlines() if line.startswith("metrics and health")]
    assert row.split() == f"metrics and health http 127.0.0.1:{port} this machine nothing: open".split()
    assert f"0.0.0.0:{process.mqtt_port}" in shown
