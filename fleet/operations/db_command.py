"""`fleet db`: upgrades, copies and restores the database of control, and lets control write Redis from it."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from fleet.client import agents
from fleet.ground.settings import Settings
from fleet.ground.terminal import plural
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.json_output import AsJson, print_result

app = typer.Typer(help="The database of control: upgrade, backup, restore, compile.", no_args_is_help=True)
_File = Annotated[Path, typer.Argument(help="The file of the copy.")]


@app.command()
@operation
async def upgrade(settings: Settings, as_json: AsJson = False) -> None:
    """Bring the tables to the newest form. Control does so itself when it starts."""
    from fleet.adapters.sql.migrate import revision
    from fleet.adapters.sql.open import open_database

    async with open_database(_text(settings)) as database:
        newest = await revision(database)
    print_result("databases", [{"revision": newest}], f"the tables have revision {newest}", as_json=as_json)


@app.command()
@operation
async def backup(settings: Settings, file: _File, as_json: AsJson = False) -> None:
    """Write a copy of the database into a new file, while control runs. For PostgreSQL use pg_dump."""
    from fleet.adapters.sql.backup import back_up

    await asyncio.to_thread(back_up, _text(settings), file)
    print_result("files", [{"path": str(file)}], f"written to {file}", as_json=as_json)


@app.command()
@operation
async def restore(settings: Settings, file: _File, as_json: AsJson = False) -> None:
    """Put a copy in the place of the database, while control does not run. Control then writes Redis again."""
    from fleet.adapters.sql.backup import restore as put_back

    await asyncio.to_thread(put_back, _text(settings), file)
    print_result("files", [{"path": str(file)}], f"restored from {file}", as_json=as_json)


@app.command("compile")
@operation
async def compile_all(settings: Settings, as_json: AsJson = False) -> None:
    """Let control write all agents and assignments into Redis again, as after a loss of Redis."""
    async with open_control(settings) as control:
        done = await control.send(agents.compile_all())
    text = f"written: {plural(done.agents, 'agent')}, {plural(done.devices, 'device')}"
    print_result("compiled", [done], text, as_json=as_json)


def _text(settings: Settings) -> str:
    # Imported late: no other command needs the web framework.
    from fleet.run.control import database_text

    return database_text(settings)
