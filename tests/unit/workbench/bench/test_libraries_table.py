"""The table of our own code beside the libraries'."""

from io import StringIO

from rich.console import Console

from fleet.workbench.bench.figures import Spread
from fleet.workbench.bench.libraries import LibraryResult
from fleet.workbench.bench.libraries_table import show_libraries


def test_table_shows_both_and_their_ratio() -> None:
    console = Console(file=StringIO(), width=120)
    result = LibraryResult("Redis", own_us=Spread(8, 5, 11), library_us=Spread(140, 100, 160), ratio=Spread(17, 9, 32))
    show_libraries(console, [result])
    shown = console.file.getvalue()
    assert all(part in shown for part in ("Redis", "8.0", "(5.0-11.0)", "140", "(100-160)", "17.0"))
