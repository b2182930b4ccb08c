"""What a broker costs, for people."""

from rich.console import Console

from fleet.workbench.bench.broker import BrokerFigures, BrokerResult
from fleet.workbench.bench.table_cells import cell, figures_table


def show_broker(console: Console, found: BrokerFigures) -> None:
    """Print what was measured."""
    title = f"CPU of the broker ({found.broker}) in microseconds: median (least-most)"
    names = ("connect", "disconnect", "message down", "message up", "idle\n% core")
    table = figures_table(title, ("",), names)
    for case in found.cases:
        figures = (case.connect_us, case.disconnect_us, case.down_us, case.up_us)
        table.add_row(case.setup.name, *map(cell, figures), f"{case.idle_percent.median:.2f}")
    console.print(table)
    console.print(
        "connect: until CONNACK and, with the plugin, until presence was told; up: raised to QoS 1, acknowledged"
    )
    for line in differences(found.cases):
        console.print(line)


def differences(cases: list[BrokerResult]) -> list[str]:
    """Say what the plugin adds, compared with devices that subscribe, as they would have to without it."""
    plain = next((case for case in cases if case.setup.subscribing), None)
    plugin = next((case for case in cases if case.setup.plugin), None)
    if plain is None or plugin is None or plain.down_us is None or plugin.down_us is None:
        return []
    pairs = (
        ("connection (against CONNECT and SUBSCRIBE)", plain.connect_us, plugin.connect_us),
        ("message down", plain.down_us, plugin.down_us),
        ("message up", plain.up_us, plugin.up_us),
    )
    return [f"the plugin adds {after.median - before.median:+.1f} us to a {what}" for what, before, after in pairs]
