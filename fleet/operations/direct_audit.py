"""The audit line of a command that changes Redis itself."""

import getpass
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import typer

from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings


async def audit_direct(settings: Settings, action: str, mac: str, after: Mapping[str, Any] | None = None) -> None:
    """Write into control's database what a command is about to do without control; where there is none, do nothing.

    A database that does not answer is no reason to refuse an emergency command: it is said on the standard error.
    """
    text = settings.database_url or f"sqlite:///{settings.data_dir / 'control.db'}"
    if settings.database_url is None and not (settings.data_dir / "control.db").exists():
        return
    # Imported late: SQLAlchemy takes longer than the whole command.
    from fleet.adapters.sql.audit_rows import AuditRows, Origin
    from fleet.adapters.sql.database import Database, database_url
    from fleet.adapters.sql.token_rows import FIRST_TENANT

    database = Database(database_url(text))
    try:
        if not await database.is_newest():
            return
        at = round(datetime.now(UTC).timestamp() * 1000)
        origin = Origin(FIRST_TENANT, f"command:{getpass.getuser()}", socket.gethostname(), "")
        await AuditRows(database).add(origin, at, action, f"device/{mac}", None, after)
    except (Unavailable, ConfigError) as error:
        typer.echo(f"fleet: this is not in the audit log: {error}", err=True)
    finally:
        await database.close()
