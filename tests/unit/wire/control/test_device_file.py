"""Files of devices: every device that is written is read again, whatever its texts and however the file is cut."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.wire.control.device_file import (
    LONGEST_LINE,
    REPORTED,
    DeviceFileReader,
    DeviceLine,
    FileError,
    Format,
    LineError,
    write_csv,
    write_csv_heading,
)
from tests.support.every import for_every

MAC = "02:00:00:00:00:01"
TEXT = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=40)
FORMULAS = (*tuple(f"{lead}=1" for lead in ("", *"\t\r\n \xa0\u200b\ufeff\x0b\x0c")), "+1", "-1", "@x")
WIDE = ("\uff1d1", "\uff0b1", "\uff0d1", "\uff20x", "\u22121", "\ufe661", " \uff1d1")
NASTY = st.one_of(
    TEXT,
    st.sampled_from(["=1+1", *FORMULAS, *WIDE, "'=1", "''", "+49", "-", "@x", "\t", "\r", '"', "a\r\nb", "a,b", " "]),
)
TAGS = st.dictionaries(st.sampled_from(["site", "floor", "x/y"]), NASTY.filter(bool), max_size=3)


def read(form: Format, *pieces: bytes) -> list[tuple[int, DeviceLine] | LineError]:
    reader = DeviceFileReader(form)
    found = [one for piece in pieces for one in reader.feed(piece)]
    return [one for one in (*found, *reader.feed(b"", end=True)) if one is not None]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@settings(max_examples=settings().max_examples)
@given(st.lists(st.tuples(NASTY, NASTY, TAGS), max_size=5), st.integers(1, 50))
def test_what_is_written_is_read_again(rows: list[tuple[str, str, dict[str, str]]], size: int) -> None:
    tags = ["floor", "site", "x/y"]
    devices: list[dict[str, Any]] = [
        {"mac": MAC, "name": name, "notes": notes, "serial": "", "attributes": {"a": [name]}, "tags": own}
        | dict.fromkeys(REPORTED, "")
        for name, notes, own in rows
    ]
    text = write_csv_heading(tags) + "".join(write_csv(one, tags) for one in devices)
    found = read("csv", *cut(text.encode(), size))
    lines = [one[1] for one in found if not isinstance(one, LineError)]
    assert len(lines) == len(found) == len(devices), found
    for line, device in zip(lines, devices, strict=True):
        assert line.columns == {name: device[name] for name in ("name", "notes", "serial", "attributes")}
        assert {key: value for key, value in line.tags.items() if value} == device["tags"]
        assert set(line.tags) == set(tags), "a tag that it does not have is removed"


def test_a_spreadsheet_sees_no_formula() -> None:
    device = dict.fromkeys(REPORTED, "") | {"mac": MAC, "serial": "", "agent": "@a", "tags": {"site": "+1"}}
    text = write_csv(device | {"name": '=HYPERLINK("x")', "notes": "-1", "attributes": {}}, ["site"])
    [cells] = csv.reader(io.StringIO(text))
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []


@for_every("text", (*FORMULAS, *WIDE))
def test_whatever_a_spreadsheet_may_run_is_marked_as_text(text: str) -> None:
    device = dict.fromkeys(REPORTED, "") | {"mac": MAC, "serial": "", "tags": {}, "attributes": {}}
    written = write_csv(device | {"name": text, "notes": f"'{text}"}, [])
    [cells] = csv.reader(io.StringIO(written, newline=""))
    assert cells[1:3] == [f"'{text}", f"''{text}"]
    [(_, line)] = read("csv", (write_csv_heading([]) + written).encode())  # type: ignore[misc] # no LineError
    assert (line.columns["name"], line.columns["notes"]) == (text, f"'{text}")


def test_lines_of_json_name_what_changes() -> None:
    lines = [
        {"mac": "02-00-00-00-00-01", "name": "=x", "tags": {"site": "a", "old": None}, "online": True},
        {"mac": MAC},
    ]
    found = read("ndjson", *cut("\n".join(map(json.dumps, lines)).encode(), 7))
    assert found == [(1, DeviceLine(MAC, {"name": "=x"}, {"site": "a", "old": ""})), (2, DeviceLine(MAC))]


def test_wrong_lines_are_named_and_the_others_read() -> None:
    wrong = {
        "[]": "no JSON object",
        "{": "no JSON",
        '{"name": "x"}': "mac",
        '{"mac": "x"}': "a MAC like",
        f'{{"mac": "{MAC}", "nam": ""}}': "nam",
        f'{{"mac": "{MAC}", "name": "a\\u0000"}}': "character 0",
        f'{{"mac": "{MAC}", "name": "\\ud800"}}': "half a character",
        f'{{"mac": "{MAC}", "attributes": {{"\\udc00": 1}}}}': "half a character",
        f'{{"mac": "{MAC}", "attributes": {{"a": -1e999}}}}': "too large",
        f'{{"mac": "{MAC}", "attributes": {{"a": [NaN]}}}}': "NaN is no number",
        f'{{"mac": "{MAC}", "tags": {{"a b": null}}}}': "tags",
        f'{{"mac": "{MAC}", "tags": {{"a": 1}}}}': "tags",
        f'{{"mac": "{MAC}", "attributes": {{"a": "{"x" * 9000}"}}}}': "at most 8000",
        '{"mac": ' + "[" * 5000: "no JSON",
    }
    found = read("ndjson", "\n".join([*wrong, f'{{"mac": "{MAC}"}}']).encode())
    assert found[-1] == (len(wrong) + 1, DeviceLine(MAC))

    for at, (error, message) in enumerate(zip(found, wrong.values(), strict=False)):
        assert isinstance(error, LineError) and error.line == at + 1 and message in error.message, error


def test_a_line_of_csv_with_other_cells_is_wrong_alone() -> None:
    found = read("csv", f'mac,notes,attributes\r\n{MAC},"a\r\nb",\r\n{MAC},a,b,c\n\n{MAC},x,[1]\n{MAC}'.encode())
    [first, second, third, fourth] = found
    assert first == (3, DeviceLine(MAC, {"notes": "a\r\nb", "attributes": {}}))
    assert isinstance(second, LineError) and (second.line, "4 cells" in second.message) == (4, True)
    assert isinstance(third, LineError) and (third.line, "attributes" in third.message) == (6, True)
    assert fourth == (7, DeviceLine(MAC))


@pytest.mark.parametrize(
    ("form", "data", "message"),
    [
        ("csv", b"name\nx", "no column mac"),
        ("csv", b"mac,color\n", "unknown column 'color'"),
        ("csv", b"mac,mac\n", "twice"),
        ("csv", b'mac\n"' + b"x\n" * LONGEST_LINE, "no end"),
        ("csv", f'mac,name\n{MAC},"unclosed'.encode(), "line 2 is no CSV"),
        ("csv", f'mac,name\n{MAC},"a"b\n'.encode(), "line 2 is no CSV"),
        ("csv", f'mac,name\n{MAC},5" disk\n{MAC},6" disk\n'.encode(), "line 3 is no CSV"),
        ("csv", f"mac,name\r{MAC},x\r".encode(), "line 1 is no CSV"),
        ("csv", f"mac,name\n{MAC},a\rb\n".encode(), "line 2 is no CSV"),
        ("csv", f"\rmac,name\n{MAC},x\n".encode(), "line 1 is no CSV"),
        ("csv", b"mac\n" + b"x" * 2 * LONGEST_LINE, "longer"),
        ("ndjson", b"\xff", "not UTF-8"),
        ("ndjson", b"\xe4", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(form: Format, data: bytes, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read(form, *cut(data, 1000))
