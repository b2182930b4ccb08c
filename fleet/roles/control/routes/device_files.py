"""`/v1/devices:import` and `:export`: files of devices, piece by piece."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import StreamingResponse

from fleet.adapters.sql.device_import import DeviceImport, Imported
from fleet.adapters.sql.device_rows import AT_ONCE
from fleet.adapters.sql.device_search import MOST_ROWS, DeviceSearch
from fleet.adapters.sql.tag_keys import TagKeys
from fleet.core.permissions import DEVICES_READ, DEVICES_WRITE
from fleet.core.query.conditions import Condition
from fleet.ground.loop_yield import LoopYield
from fleet.roles.control.access import Principal, Who
from fleet.roles.control.device_queries import device_json, read_query
from fleet.roles.control.idempotency import HEADER
from fleet.roles.control.problems import Problem
from fleet.roles.control.request_pieces import pieces
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.device_file import (
    DeviceFileReader,
    DeviceLine,
    FileError,
    Format,
    LineError,
    write_csv,
    write_csv_heading,
)
from fleet.wire.control.device_texts import MOST_TAGS
from fleet.wire.control.devices import FilterText, ImportReport, LineFault
from fleet.wire.control.shapes import Shape
from fleet.wire.json_text import json_length

MOST_ERRORS = 1_000
"""Errors of single lines that an answer names; with more of them an import ends."""
_FIRST_ERRORS = 20
"""Of them, those that the refusal of a file names."""
_SLICE = 2_000
"""Bytes that are read without a pause, if they have few lines."""
_PAUSE = 2_000
"""Units of `LoopYield` between two pauses: 200 lines. Other work shares the event loop."""
LARGEST_AUDIT = 100_000
"""Characters of what differs in the audit line of a batch."""
LARGEST_FILE = 1_000_000_000
_ROWS = 50
"""Devices that are written between two pauses."""
_TOO_MANY_TAGS = "the device would have too many tags"
_LINES = "application/x-ndjson"
_FORMATS: dict[str, Format] = {"text/csv": "csv", _LINES: "ndjson", "application/ndjson": "ndjson"}
_IMPORT = RouteNotes(takes=tuple(_FORMATS), refusals=(415,))


class ExportQuery(Shape):
    """Which devices a file has, and its form."""

    format: Literal["csv", "ndjson"] = "csv"
    filter: FilterText = ""


class ImportQuery(Shape):
    """Whether an import is only tried."""

    dry_run: bool = False


class FileRoutes:
    """Imports and exports devices."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        routes.add(
            "GET /devices:export", self.export, DEVICES_READ, model=None, notes=RouteNotes(gives=("text/csv", _LINES))
        )
        routes.add("POST /devices:import", self.import_, DEVICES_WRITE, streamed=True, notes=_IMPORT)

    async def export(self, who: Who, query: Annotated[ExportQuery, Query()]) -> StreamingResponse:
        """Return the devices that a query means as a file. What a spreadsheet takes for a formula is marked as text."""
        condition = read_query(query.filter)
        tags = await TagKeys(self._database).of(who.tenant)
        kind = "text/csv; charset=utf-8; header=present" if query.format == "csv" else _LINES
        headers = {"Content-Disposition": f'attachment; filename="devices.{query.format}"'}
        lines = self._csv(who, condition, tags) if query.format == "csv" else self._ndjson(who, condition)
        return StreamingResponse(lines, headers=headers, media_type=kind)

    async def import_(self, request: Request, who: Who, query: Annotated[ImportQuery, Query()]) -> ImportReport:
        """Register and change the devices of a file: `text/csv` with a heading, or `application/x-ndjson`.

        What a line does not name stays. Lines that cannot be taken are named in the answer; the others are taken, and
        an import that is repeated changes nothing, so it takes no `Idempotency-Key`. With more than 1,000 lines that
        cannot be taken it ends. A kill in the middle leaves whole batches of lines. With `dry_run` nothing is written:
        the answer says what would be done. Of several lines of one device the later ones count; such a device counts
        once if they are near each other, else it may count again.
        """
        if HEADER in request.headers:
            detail = f"an import takes no {HEADER}: send the file again, what is there already stays as it is"
            raise Problem(400, "bad-key", detail)
        form = _FORMATS.get(request.headers.get("content-type", "").partition(";")[0].strip().lower())
        if form is None:
            raise Problem(415, "wrong-type", f"Content-Type must be one of {', '.join(_FORMATS)}")
        work = _Import(self._services, request, who, dry_run=query.dry_run)
        try:
            await work.read(DeviceFileReader(form))
        except FileError as error:
            await work.flush()
            detail = f"{error}; {work.done} devices before it {'would be' if query.dry_run else 'were'} taken"
            raise Problem(400, "bad-file", detail, errors=work.first_errors()) from error
        return work.report()

    async def _csv(self, who: Principal, condition: Condition, tags: list[str]) -> AsyncIterator[str]:
        yield write_csv_heading(tags)
        async for page in self._pages(who, condition):
            yield "".join(write_csv(one, tags) for one in page)

    async def _ndjson(self, who: Principal, condition: Condition) -> AsyncIterator[str]:
        async for page in self._pages(who, condition):
            yield "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in page)

    async def _pages(self, who: Principal, condition: Condition) -> AsyncIterator[list[dict[str, Any]]]:
        search, cursor = DeviceSearch(self._database, who.tenant), ""
        while True:
            page = await search.page(condition, cursor=cursor, limit=MOST_ROWS)
            for at in range(0, len(page.devices), _ROWS):
                yield [device_json(one) for one in page.devices[at : at + _ROWS]]
                await asyncio.sleep(0)
            cursor = page.cursor
            if not cursor:
                return


class _Import:
    """Writes lines in batches, each with its audit line in one transaction."""

    def __init__(self, services: ControlServices, request: Request, who: Principal, *, dry_run: bool) -> None:
        self._services, self._request, self._who, self._dry_run = services, request, who, dry_run
        self._batch: dict[str, tuple[int, DeviceLine]] = {}
        self._errors: list[LineFault] = []
        self._added = self._changed = self._taken = self._failed = 0
        self._loop_yield = LoopYield(_PAUSE)

    @property
    def done(self) -> int:
        return self._added + self._changed

    async def read(self, reader: DeviceFileReader) -> None:
        """Take the whole file.

        Raises:
            FileError: It cannot be read, or more than `MOST_ERRORS` lines cannot be taken.
            Problem: It is too large, too slow, or broke off.
        """
        async for piece in pieces(self._request, LARGEST_FILE, "a file"):
            for at in range(0, len(piece), _SLICE):
                await self._take_all(reader.feed(piece[at : at + _SLICE]))
                await self._loop_yield.spend(_SLICE)
        await self._take_all(reader.feed(b"", end=True))
        await self.flush()

    async def _take_all(self, lines: Iterable[tuple[int, DeviceLine] | LineError | None]) -> None:
        for found in lines:
            if isinstance(found, LineError):
                self._fail(found.line, found.message)
            elif found is not None:
                await self._take(*found)
            if self._failed > MOST_ERRORS:
                first = f"line {self._errors[0].line}: {self._errors[0].message}"
                raise FileError(f"more than {MOST_ERRORS} lines cannot be taken, the first one is {first}")
            await self._loop_yield.spend(0)

    async def _take(self, number: int, line: DeviceLine) -> None:
        if line.mac not in self._batch and len(self._batch) == AT_ONCE:
            await self.flush()
        if line.mac in self._batch:
            # A transaction for each line of one device would make its file cost more than any other.
            line = self._batch[line.mac][1].followed_by(line)
        if len(line.tags) > MOST_TAGS:
            self._fail(number, _TOO_MANY_TAGS)
        else:
            self._batch[line.mac] = number, line

    async def flush(self) -> None:
        if not self._batch:
            return
        batch, self._batch = self._batch, {}
        done = await self._write([line for _, line in batch.values()])
        self._added += len(done.added)
        self._changed += len(done.changed)
        self._taken += len(batch) - len(done.foreign) - len(done.overfull)
        for mac in done.foreign:
            self._fail(batch[mac][0], "this MAC is registered already")
        for mac in done.overfull:
            self._fail(batch[mac][0], _TOO_MANY_TAGS)

    async def _write(self, lines: list[DeviceLine]) -> Imported:
        if self._dry_run:
            return await DeviceImport(self._services.database, self._who.tenant).write(lines, dry_run=True)
        async with self._services.changes.begin(self._request) as change:
            done = await DeviceImport(change.sql, self._who.tenant).write(lines)
            if done.added or done.changed:
                kept = _kept(done)
                before = {"devices": {mac: done.before[mac] for mac in kept}}
                after: dict[str, Any] = {"added": list(done.added), "changed": list(done.changed)}
                after |= {"devices": {mac: done.after[mac] for mac in kept}}
                await change.audit("device.import", "devices", before=before, after=after)
            return done

    def first_errors(self) -> list[dict[str, str]]:
        return [{"at": f"line {one.line}", "message": one.message} for one in self._errors[:_FIRST_ERRORS]]

    def report(self) -> ImportReport:
        return ImportReport(
            added=self._added,
            changed=self._changed,
            unchanged=self._taken - self.done,
            failed=self._failed,
            errors=self._errors,
        )

    def _fail(self, line: int, message: str) -> None:
        self._failed += 1
        if len(self._errors) < MOST_ERRORS:
            self._errors.append(LineFault(line=line, message=message))


def _kept(done: Imported) -> list[str]:
    """Return the changed devices of which the audit log says what differs: the first ones, within `LARGEST_AUDIT`."""
    kept, left = list[str](), LARGEST_AUDIT
    for mac in done.changed:
        left -= json_length([done.before[mac], done.after[mac]])
        if left < 0:
            break
        kept.append(mac)
    return kept
