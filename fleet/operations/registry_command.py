"""`fleet devices`: the registry of devices, over control."""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.client import devices
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural, visible
from fleet.operations.connect import Mac, operation, read_mac
from fleet.operations.control_access import open_control
from fleet.operations.decision_output import print_outcome
from fleet.operations.json_output import AsJson, AsJsonLines, print_json, print_result
from fleet.operations.listing import Value, print_list
from fleet.wire.control.devices import Device, DeviceAddition, DevicePatch

app = typer.Typer()

Query = Annotated[str, typer.Argument(help="A query, such as 'tag.site=berlin AND firmware<2.5'; empty: all devices.")]
_COLUMNS = ("mac", "name", "state", "online", "board", "firmware", "last_seen", "agent", "tags")
_PIECE = 65_536
_KINDS = {".csv": "text/csv", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson"}


@app.command()
@operation
async def search(
    settings: Settings,
    query: Query = "",
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Devices at most.")] = 100,
    sort: Annotated[str, typer.Option(help="mac, name, last_seen or -last_seen.")] = "mac",
    as_json: AsJson = False,
) -> None:
    """Search devices by a query: name, tags, board, firmware, presence and more (docs/reference/queries.md)."""
    found: list[Device] = []
    async with open_control(settings) as control:
        async for page in control.pages(devices.search(query, limit=min(limit, 500), sort=sort)):
            found += page.items[: limit - len(found)]
            if len(found) == limit:
                break
    if as_json:
        print_json("devices", found)
    else:
        print_list("devices", _COLUMNS, (_row(one) for one in found), as_json=False)


@app.command()
@operation
async def show(settings: Settings, mac: Mac, as_json: AsJson = False) -> None:
    """Show a device: what people wrote about it, what it told, its tools and its last connections."""
    name = read_mac(mac)
    async with open_control(settings) as control:
        device = (await control.send(devices.read(name))).model_dump(mode="json")
        tools = (await control.send(devices.tools(name))).items
        history = (await control.send(devices.presence(name, limit=10))).model_dump(mode="json")["items"]
    if as_json:
        typer.echo(json.dumps({"device": device, "tools": tools, "presence": history}, indent=2))
        return
    rows: list[tuple[str, Value]] = [(field.replace("_", " "), _cell(value)) for field, value in device.items()]
    rows.append(("tools", ", ".join(tools)))
    rows += [("connected" if one["online"] else "disconnected", one["at"]) for one in history]
    print_list("device", ("field", "value"), rows, as_json=False, heading=False)


@app.command()
@operation
async def tag(
    settings: Settings,
    mac: Mac,
    tags: Annotated[list[str], typer.Argument(help="KEY=VALUE sets a tag, KEY= removes it.")],
    as_json: AsJson = False,
) -> None:
    """Set or remove tags of a device."""
    pairs = [text.partition("=") for text in tags]
    if any(not separator for _, separator, _ in pairs):
        raise ConfigError("write KEY=VALUE, or KEY= to remove a tag")
    async with open_control(settings) as control:
        changed = await control.send(devices.tag(read_mac(mac), {key: value or None for key, _, value in pairs}))
    print_result("devices", [changed], f"{changed.mac}: {_cell(changed.tags) or 'no tags'}", as_json=as_json)


@app.command()
@operation
async def register(
    settings: Settings,
    mac: Mac,
    name: Annotated[str, typer.Option(help="A name for people.")] = "",
    serial: Annotated[str, typer.Option(help="The serial number.")] = "",
    as_json: AsJson = False,
) -> None:
    """Register a device before it is seen. `fleet devices bind` binds it."""
    async with open_control(settings) as control:
        added = await control.send(devices.register(DeviceAddition(mac=read_mac(mac), name=name, serial=serial)))
    print_result("devices", [added], f"{added.mac} is registered", as_json=as_json)


@app.command()
@operation
async def change(
    settings: Settings,
    mac: Mac,
    name: Annotated[str | None, typer.Option(help="A name for people.")] = None,
    notes: Annotated[str | None, typer.Option(help="Notes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change the name or the notes of a device. `fleet agents assign` gives it an agent."""
    named = {"name": name, "notes": notes}
    patch = DevicePatch.model_validate({field: value for field, value in named.items() if value is not None})
    async with open_control(settings) as control:
        changed = await control.send(devices.change(read_mac(mac), patch))
    print_result("devices", [changed], f"{changed.mac} has version {changed.version} now", as_json=as_json)


@app.command()
@operation
async def counts(
    settings: Settings,
    query: Query = "",
    by: Annotated[str, typer.Option(help="Fields, with commas between them; also tag.KEY.")] = "board,firmware,online",
    as_json: AsJson = False,
) -> None:
    """Count devices by the values of fields."""
    async with open_control(settings) as control:
        found = (await control.send(devices.counts(by, query))).items
    rows = [(one.field, value, count) for one in found for value, count in one.values.items()]
    print_list("counts", ("field", "value", "devices"), rows, as_json=as_json)


@app.command()
@operation
async def waiting(settings: Settings, as_json: AsJson = False) -> None:
    """List the devices that show a code now. Use `bind` with the code."""
    async with open_control(settings) as control:
        found = (await control.send(devices.waiting())).items
    print_list("waiting", ("device", "code"), [(one.mac, one.code) for one in found], as_json=as_json)


@app.command()
@operation
async def forget(settings: Settings, mac: Mac, as_json: AsJson = False) -> None:
    """Delete everything about a device: its row, its history, what it remembers, its owner. Switch it off before."""
    async with open_control(settings) as control:
        done = await control.send(devices.decide(read_mac(mac), "forget"))
    print_outcome(done, "is forgotten", as_json=as_json)


@app.command()
@operation
async def move(
    settings: Settings,
    mac: Mac,
    tenant: Annotated[str, typer.Argument(help="The tenant that gets the device.")],
    source: Annotated[str | None, typer.Option("--from", help="The tenant that has it; yours if not named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give a device to another tenant."""
    async with open_control(settings) as control:
        done = await control.send(devices.move(read_mac(mac), tenant, source))
    print_outcome(done, f"belongs to {visible(tenant)}", as_json=as_json)


@app.command("import")
@operation
async def import_file(
    settings: Settings,
    file: Annotated[Path, typer.Argument(help="A file of devices: .csv or .ndjson.", exists=True, dir_okay=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what it would do.")] = False,
    as_json: AsJson = False,
) -> int:
    """Register and change the devices of a file. Exit code 1: some lines were not taken."""
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        raise ConfigError(f"{file} must end with {', '.join(_KINDS)}")
    async with open_control(settings) as control:
        done = await control.upload(devices.import_file(dry_run=dry_run), _pieces(file), kind)
    if as_json:
        typer.echo(done.model_dump_json(indent=2))
        return 1 if done.failed else 0
    for fault in done.errors:
        typer.echo(f"line {fault.line}: {visible(fault.message)}", err=True)
    typer.echo(
        f"{done.added} added, {done.changed} changed, {done.unchanged} unchanged, {plural(done.failed, 'error')}"
    )
    return 1 if done.failed else 0


@app.command("export")
@operation
async def export_file(
    settings: Settings,
    query: Query = "",
    form: Annotated[str, typer.Option("--format", help="csv or ndjson.")] = "csv",
    as_json: AsJsonLines = False,
) -> None:
    """Print the devices that a query means as a file, which `import` reads."""
    async with open_control(settings) as control:
        asked = {"format": "ndjson" if as_json else form, "filter": query}
        async for piece in control.download("/devices:export", asked):
            sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            yield piece


def _row(device: Device) -> Sequence[Value]:
    return [device.last_seen if column == "last_seen" else _cell(getattr(device, column)) for column in _COLUMNS]


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
