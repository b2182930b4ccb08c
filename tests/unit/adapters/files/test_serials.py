from pathlib import Path

import pytest

from fleet.adapters.files.serials import Serials, parse
from fleet.ground.errors import ConfigError

KEY = bytes(range(32))


def test_a_line_is_a_serial_number_its_key_and_perhaps_a_mac() -> None:
    known = parse(f"# first\n\nS1 {KEY.hex()}\nS2 {KEY.hex()} AA-BB-CC-DD-EE-FF\n")
    assert (known["S1"].key, known["S1"].mac) == (KEY, "")
    assert known["S2"].mac == "aa:bb:cc:dd:ee:ff"


@pytest.mark.parametrize(
    "line", ["S1", "S1 xyz", f"S1 {KEY.hex()[2:]}", f"S1 {KEY.hex()} nomac", f"S1 {KEY.hex()} a b"]
)
def test_a_wrong_line_is_named(line: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse(f"# one\n{line}\n")


def test_the_file_is_followed_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "serials"
    path.write_text(f"S1 {KEY.hex()}\n")
    serials = Serials(path)
    assert serials.find("S1") and serials.find("S2") is None
    path.write_text(f"S1 {KEY.hex()}\nS2 {KEY.hex()}\n")
    assert serials.find("S2")
    path.write_text("broken\n")
    assert serials.find("S2")
    path.unlink()
    assert serials.find("S2")


def test_without_a_file_no_serial_number_is_known() -> None:
    assert Serials(None).find("") is None
