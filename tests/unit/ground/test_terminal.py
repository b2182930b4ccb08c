import io

import pytest
from rich.console import Console
from rich.table import Table

from fleet.ground.terminal import cell, itemised, plural, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[/x] 你好, naïve", "[/x] 你好, naïve"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u202eb\u200bc", r"a\u202eb\u200bc"),
        ("a\r\nb\x00", r"a\r\nb\x00"),
        ("\ud800\x9b", r"\ud800\x9b"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown_as_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_cell_is_no_markup() -> None:
    stream = io.StringIO()
    table = Table("x")
    table.add_row(cell("[/x][red]a[/red]\x07"))
    Console(file=stream, width=80).print(table)
    assert r"[/x][red]a[/red]\x07" in stream.getvalue()


def test_counts_have_the_right_form() -> None:
    assert [plural(count, "packet") for count in (0, 1, 2)] == ["0 packets", "1 packet", "2 packets"]
    assert plural(1, "try", "tries") == "1 try" and plural(3, "try", "tries") == "3 tries"
    assert plural(2.5, "minute") == "2.5 minutes" and plural(1_234_567, "packet") == "1234567 packets"


def test_each_item_is_a_paragraph_of_its_own() -> None:
    assert itemised("Two:", ("one", "two")) == "Two:\n\n- one\n\n- two"
