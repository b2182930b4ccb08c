"""Print what `scripts/bench turn-ends` found."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.benchmarks.turn_ends import LONG_WAIT_MS, PAUSES, Tried


def show_turn_ends(console: Console, found: Sequence[Tried]) -> None:
    table = Table("language", *(f"cut off at {ms} ms" for ms in PAUSES), "of all", "waits ≥ 600 ms", "wait", "wasted")
    for language in sorted({one.language for one in found}):
        own = [one for one in found if one.language == language]
        whole = sorted(one.wait_ms for one in own if not one.pause_ms)
        paused = [one for one in own if one.pause_ms]
        table.add_row(
            language,
            *(_share([one.cut_off for one in paused if one.pause_ms == ms]) for ms in PAUSES),
            _share([one.cut_off for one in paused]),
            _share([wait >= LONG_WAIT_MS for wait in whole]),
            f"{whole[len(whole) // 2]:.0f} ms",
            f"{sum(one.prepared for one in own) / len(own):.2f}",
        )
    console.print(table)
    console.print("wait: median of whole commands, from their last sound; wasted: prepared answers a clip")


def _share(told: Sequence[bool]) -> str:
    return f"{sum(told)} of {len(told)} ({100 * sum(told) / len(told):.0f} %)" if told else "-"
