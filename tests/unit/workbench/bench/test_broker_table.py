from dataclasses import replace

from rich.console import Console

from fleet.workbench.bench.broker import SETUPS, BrokerFigures, BrokerResult
from fleet.workbench.bench.broker_table import differences, show_broker
from fleet.workbench.bench.figures import Spread

COST = Spread(50, 40, 60)
CASES = [
    BrokerResult(setup, COST, COST, COST if setup.plugin or setup.subscribing else None, COST, Spread(0.1, 0.1, 0.1))
    for setup in SETUPS
]


def test_table_holds_broker_and_setups() -> None:
    console = Console(record=True, width=120)
    show_broker(console, BrokerFigures("mosquitto version 2", CASES))
    text = console.export_text()
    assert all(setup.name in text for setup in SETUPS)
    assert all(word in text for word in ("mosquitto version 2", "50.0", "(40.0-60.0)", "0.10"))


def test_difference_is_that_to_devices_that_subscribe() -> None:
    dearer = [*CASES[:2], replace(CASES[2], connect_us=Spread(62.5, 60, 65), up_us=Spread(49, 48, 50))]
    told = differences(dearer)
    assert [line.split(" us")[0] for line in told] == [
        f"the plugin adds {figure}" for figure in ("+12.5", "+0.0", "-1.0")
    ]


def test_nothing_is_compared_with_nothing() -> None:
    assert differences(CASES[:2]) == differences(CASES[2:]) == differences([]) == []
