"""What `fleet up` says of its ports."""

import pytest

from fleet.assembly.ports import keep_metrics_here, table
from fleet.settings import Settings


def rows(**settings: object) -> dict[str, str]:
    """Return the lines of the table by their port."""
    lines = table(keep_metrics_here(Settings(**settings))).splitlines()
    return {line.split()[0]: line for line in lines[1:]}


def test_metrics_have_no_login_and_listen_on_this_machine_only() -> None:
    assert keep_metrics_here(Settings()).metrics_host == "127.0.0.1"
    assert "this machine" in rows()["9464/tcp"]


def test_an_address_for_metrics_that_somebody_chose_is_kept() -> None:
    assert keep_metrics_here(Settings(metrics_host="0.0.0.0")).metrics_host == "0.0.0.0"
    assert "every network" in rows(metrics_host="0.0.0.0")["9464/tcp"]


def test_every_port_is_listed_and_what_is_open_is_said_loudly() -> None:
    found = rows(activation="open")
    assert set(found) == {"8884/udp", "8000/tcp", "9400/tcp", "9464/tcp", "1883/tcp"}
    assert "EVERYBODY" in found["8000/tcp"]
    assert "EVERYBODY" in found["9400/tcp"]


@pytest.mark.parametrize("policy", ["first", "code", "closed"])
def test_what_is_guarded_is_no_alarm(policy: str) -> None:
    found = rows(activation=policy, gateway_tokens=True)
    assert not any("EVERYBODY" in line for line in found.values())
    assert f"FLEET_ACTIVATION={policy}" in found["8000/tcp"]


def test_ports_of_a_broker_elsewhere_are_not_ours() -> None:
    assert "1883/tcp" not in rows(mqtt_url="mqtt://broker.example.org:1883")


def test_the_table_is_plain_text() -> None:
    assert table(Settings()).isascii()
