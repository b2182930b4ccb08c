"""What `fleet up` shows of its ports."""

from typing import Any

from fleet.ground.settings import Settings
from fleet.run.listeners_table import listeners, table


def test_every_port_is_shown_with_who_reaches_it_and_what_it_requires() -> None:
    settings = Settings(
        activation="code", http_host="127.0.0.1", metrics_host="10.0.0.7", gateway_tokens=True, mqtt_port=1884
    )
    rows = {(row.purpose, row.protocol): row for row in listeners(settings, 8123, 8003)}
    assert set(rows) == {
        ("devices: bootstrap", "http"),
        ("devices: messages", "mqtt"),
        ("devices: audio", "udp"),
        ("text clients", "websocket"),
        ("operators: control", "http"),
        ("metrics and health", "http"),
    }
    bootstrap = rows["devices: bootstrap", "http"]
    assert (bootstrap.address, bootstrap.reachable, bootstrap.requires) == (
        "127.0.0.1:8123",
        "this machine",
        "that you accept its code (FLEET_ACTIVATION=code)",
    )
    assert rows["devices: messages", "mqtt"].reachable == "hosts on all networks"
    assert rows["metrics and health", "http"].reachable == "hosts that reach 10.0.0.7"
    assert rows["text clients", "websocket"].requires == "a token"
    assert rows["operators: control", "http"].reachable == "this machine"


def test_control_that_other_machines_reach_has_tls_or_a_proxy() -> None:
    def protocol(**named: Any) -> str:
        return next(
            row.protocol
            for row in listeners(Settings(**named), control_port=8003)
            if row.purpose == "operators: control"
        )

    assert protocol(control_host="0.0.0.0") == "https"
    assert protocol(control_host="0.0.0.0", control_proxy=True) == "http"


def test_what_is_open_is_called_so() -> None:
    requires = [row.requires for row in listeners(Settings(activation="open")) if row.requires.startswith("nothing")]
    assert requires == ["nothing: open (FLEET_ACTIVATION=open)", "nothing: open", "nothing: open"]


def test_a_broker_of_your_own_and_metrics_that_are_off_are_no_ports_of_ours() -> None:
    shown = {row.purpose for row in listeners(Settings(mqtt_url="mqtt://broker", metrics_port=0))}
    assert shown == {"devices: bootstrap", "devices: audio", "text clients"}


def test_the_table_is_plain_ascii_in_columns() -> None:
    lines = table(listeners(Settings())).splitlines()
    assert all(line.isascii() and line == line.rstrip() for line in lines)
    starts = lines[0].index("PROTOCOL")
    assert {line[starts - 1] for line in lines} == {" "}
    assert all(line[starts] != " " for line in lines)
