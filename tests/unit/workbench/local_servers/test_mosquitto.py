from fleet.workbench.local_servers.mosquitto import with_options

SHIPPED = """\
# a comment about listener
allow_anonymous false
listener 1883
max_qos 1
#listener 8883
"""


def test_values_are_replaced_in_place() -> None:
    adapted = with_options(SHIPPED, {"listener": "10001 127.0.0.1"}).splitlines()
    assert adapted == SHIPPED.replace("\nlistener 1883", "\nlistener 10001 127.0.0.1").splitlines()


def test_options_that_are_not_there_come_before_any_listener() -> None:
    adapted = with_options(SHIPPED, {"user": "root", "max_qos": "0"}).splitlines()
    assert adapted[0] == "user root"
    assert "max_qos 0" in adapted and "max_qos 1" not in adapted
