"""Files of devices: CSV and NDJSON, read and written line by line.

The columns of CSV are `mac`, `name`, `notes`, `serial`, `attributes` (JSON), and `tag.KEY` for each tag. A cell that a
spreadsheet may take for a formula gets an apostrophe in front; reading removes it.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from fleet.wire.control.device_texts import Attributes, Mac, Name, Notes, Serial, Tags
from fleet.wire.control.strict_json import UnfitJson, read_json

Format = Literal["csv", "ndjson"]
LONGEST_LINE = 32_000
"""Characters of one device in a file."""
MOST_COLUMNS = 100
COLUMNS = ("mac", "name", "notes", "serial", "attributes")
REPORTED = (
    *("agent", "state", "board", "firmware", "client", "language", "key", "online"),
    *("first_seen", "last_seen", "last_boot", "version"),
)
"""What a file that was written here says beyond them; reading passes over it. An agent is assigned, not imported."""
_TAG = "tag."
_MARKED = re.compile(
    r"'|[\t\r\n]|[\s\x00-\x1f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66\ufe6b]"
)
"""How a cell begins that gets an apostrophe: like a formula, though after blanks, in full or small width; or with an
apostrophe, so that reading takes away what writing added."""


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """A device of a file: what it does not name stays as it is. A tag with an empty value is removed."""

    mac: str
    columns: Mapping[str, Any] = field(default_factory=dict)
    """Values of `name`, `notes`, `serial`, `attributes`."""
    tags: Mapping[str, str] = field(default_factory=dict)

    def followed_by(self, later: "DeviceLine") -> "DeviceLine":
        """Return the line that does what this one and a later one of the same device do."""
        return DeviceLine(self.mac, {**self.columns, **later.columns}, {**self.tags, **later.tags})


@dataclass(frozen=True, slots=True)
class LineError:
    """Why a line cannot be read. Lines count from 1; a line of CSV may hold line breaks in quotes."""

    line: int
    message: str


class FileError(ValueError):
    """The file as a whole cannot be read, for instance its heading; reading ends."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mac: Mac
    name: Name = ""
    notes: Notes = ""
    serial: Serial = ""
    attributes: Attributes = {}
    tags: Tags = {}


class DeviceFileReader:
    """Reads a file piece by piece, and holds no more than a line of it.

    Args:
        form: Of the file.
    """

    def __init__(self, form: Format) -> None:
        self._form: Format = form
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._rest = ""
        self._parts: list[str] = []
        """Lines of a device whose quote is open."""
        self._size = 0
        self._open = False
        self._line = 0
        self._heading: list[str] | None = None

    def feed(self, piece: bytes, *, end: bool = False) -> Iterator[tuple[int, DeviceLine] | LineError | None]:
        """Yield one thing for each line that is complete now, so that its reader can pause after any number of lines.

        This is a device with the number of its line, or what is wrong with it, or None: the line says nothing, or the
        device goes on in the next line.

        Args:
            piece: The next bytes.
            end: Whether these are the last ones.

        Raises:
            FileError: The file is not UTF-8, its heading is wrong, or a line is too long.
        """
        try:
            self._rest += self._decoder.decode(piece, final=end)
        except UnicodeDecodeError as error:
            raise FileError("the file is not UTF-8") from error
        *lines, self._rest = self._rest.split("\n")
        for line in lines:
            yield self._add(line)
        if self._size + len(self._rest) > LONGEST_LINE:
            raise FileError(f"line {self._line + 1} is longer than {LONGEST_LINE} characters")
        if end and (self._rest or self._parts):
            yield self._add(self._rest, last=True)

    def _add(self, line: str, *, last: bool = False) -> tuple[int, DeviceLine] | LineError | None:
        self._line += 1
        self._parts.append(line)
        self._size += len(line) + 1
        self._open ^= self._form == "csv" and line.count('"') % 2 == 1
        if self._open and not last:
            if self._size > LONGEST_LINE:
                raise FileError(f"line {self._line}: a quote has no end")
            return None
        record = "\n".join(self._parts)
        self._parts, self._size, self._open = [], 0, False
        return self._take(record)

    def _take(self, record: str) -> tuple[int, DeviceLine] | LineError | None:
        record = record.rstrip("\r")
        if len(record) > LONGEST_LINE:
            raise FileError(f"line {self._line} is longer than {LONGEST_LINE} characters")
        if not record.strip():
            return None
        if self._form == "ndjson":
            return self._checked(_json(record))
        if self._heading is None:
            self._heading = _heading(self._row(record))
            return None
        return self._checked(self._cells(record))

    def _cells(self, record: str) -> dict[str, Any] | str:
        cells = self._row(record)
        heading = self._heading or []
        if len(cells) > len(heading):
            return f"it has {len(cells)} cells, and the heading has {len(heading)}"
        values: dict[str, Any] = {}
        tags: dict[str, str] = {}
        for name, cell in zip(heading, map(_plain, cells), strict=False):
            if name.startswith(_TAG):
                tags[name.removeprefix(_TAG)] = cell
            elif name in REPORTED:
                continue
            elif name != "attributes":
                values[name] = cell
            else:
                found = _json(cell) if cell else {}
                if isinstance(found, str):
                    return f"attributes: {found}"
                values[name] = found
        return {**values, "tags": tags} if tags else values

    def _row(self, record: str) -> list[str]:
        try:
            rows = list(csv.reader(io.StringIO(record), strict=True))
        except csv.Error:
            rows = []
        if len(rows) != 1:
            form = "lines end with LF or CRLF, and a cell with a quote, a comma or a line break is in quotes"
            raise FileError(f"line {self._line} is no CSV: {form}")
        return rows[0]

    def _checked(self, values: dict[str, Any] | str) -> tuple[int, DeviceLine] | LineError:
        if isinstance(values, str):
            return LineError(self._line, values)
        values = {name: value for name, value in values.items() if name not in REPORTED}
        tags = values.get("tags")
        removed = [key for key, value in tags.items() if value in ("", None)] if isinstance(tags, dict) else []
        if isinstance(tags, dict) and removed:
            # Keys of removed tags are checked with a value in place of none.
            values = {**values, "tags": {**tags, **dict.fromkeys(removed, "-")}}
        try:
            line = _Line.model_validate(values)
        except ValidationError as error:
            fault = error.errors()[0]
            return LineError(self._line, f"{'.'.join(map(str, fault['loc']))[:100]}: {fault['msg'][:200]}")
        named = {name: getattr(line, name) for name in line.model_fields_set if name not in ("mac", "tags")}
        return self._line, DeviceLine(line.mac, named, {**line.tags, **dict.fromkeys(removed, "")})


def write_csv_heading(tags: Sequence[str]) -> str:
    """Return the heading of a CSV file with columns for some tags."""
    return _row([*COLUMNS, *(f"{_TAG}{key}" for key in tags), *REPORTED])


def write_csv(device: Mapping[str, Any], tags: Sequence[str]) -> str:
    """Return the row of a device: `COLUMNS`, `REPORTED` and `tags` by name."""
    cells = [device[name] for name in COLUMNS[:-1]]
    attributes = json.dumps(device["attributes"], ensure_ascii=False) if device["attributes"] else ""
    tagged = (device["tags"].get(key, "") for key in tags)
    return _row([*cells, attributes, *tagged, *(device[name] for name in REPORTED)])


def _row(cells: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(map(as_cell, cells))
    return out.getvalue()


def as_cell(cell: Any) -> str:
    """Return a cell that no spreadsheet takes for a formula."""
    text = "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
    return f"'{text}" if _MARKED.match(text) else text


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _MARKED.match(cell, 1) else cell


def _heading(cells: Sequence[str]) -> list[str]:
    names = [name.strip() for name in cells]
    unknown = [name for name in names if name not in (*COLUMNS, *REPORTED) and not name.startswith(_TAG)]
    if "mac" not in names:
        raise FileError("the heading has no column mac")
    if unknown:
        known = ", ".join((*COLUMNS, "tag.KEY"))
        raise FileError(f"the heading has the unknown column {unknown[0][:60]!r}; columns are {known}")
    if len(set(names)) < len(names) or len(names) > MOST_COLUMNS:
        raise FileError(f"the heading names a column twice, or more than {MOST_COLUMNS} columns")
    return names


def _json(text: str) -> dict[str, Any] | str:
    try:
        found = read_json(text)
    except UnfitJson as error:
        return str(error)
    except (ValueError, RecursionError):
        return "it is no JSON"
    return found if isinstance(found, dict) else "it is no JSON object"
