import struct

import pytest

from fleet.wire.firmware import image_version, is_board, parse_version


@pytest.mark.parametrize("text", ["2.4.2", "0", "10.20.30.40", "999999999.1"])
def test_numbers_between_dots_are_a_version(text: str) -> None:
    assert parse_version(text) == tuple(int(part) for part in text.split("."))


@pytest.mark.parametrize(
    "text", ["", "v2.4", "2..4", "2.4-dev", "20260808120000", " 2.4", "2.4\n", "٢.٤", "1." * 9 + "1"]
)
def test_what_makes_firmware_abort_is_no_version(text: str) -> None:
    assert parse_version(text) is None


def test_versions_compare_as_firmware_does() -> None:
    assert (parse_version("2.10.0") or ()) > (parse_version("2.9.9") or ())
    assert (parse_version("2.4.0") or ()) > (parse_version("2.4") or ())


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\\b", "-x", "a b", "x" * 65, "a\0"])
def test_what_could_lead_elsewhere_is_no_board(name: str) -> None:
    assert not is_board(name)


def test_an_image_tells_its_version() -> None:
    described = struct.pack("<II8x", 0xABCD5432, 0) + b"2.5.0".ljust(32, b"\0")
    assert image_version(b"\xe9" + bytes(31) + described) == "2.5.0"
    assert image_version(b"\xe8" + bytes(31) + described) is None
    assert image_version((b"\xe9" + bytes(31) + described)[:-1]) is None
    assert image_version(bytes(80)) is None
