"""Opens the database of control."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleet.adapters.sql.database import Database, database_url
from fleet.adapters.sql.idempotency_rows import IdempotencyRows
from fleet.adapters.sql.sqlite_owner import keep_private, owning


@asynccontextmanager
async def open_database(text: str) -> AsyncIterator[Database]:
    """Open a database, with the newest tables, during the block.

    Args:
        text: See `database_url`.

    Raises:
        ConfigError: The address is wrong, a newer fleet made the tables, or another process has the file of SQLite.
        Unavailable: The database does not answer.
    """
    url = database_url(text)
    async with AsyncExitStack() as stack:
        if url.get_backend_name() == "sqlite":
            stack.enter_context(owning(Path(url.database or "")))
            keep_private(Path(url.database or ""))
        database = Database(url)
        stack.push_async_callback(database.close)
        if not await database.is_newest():
            # Imported late: alembic costs a third of a second, and is seldom needed.
            from fleet.adapters.sql.migrate import upgrade

            await upgrade(database)
        if database.is_sqlite:
            # A process that was killed left keys whose requests will never end.
            await IdempotencyRows(database).release_all()
        yield database
