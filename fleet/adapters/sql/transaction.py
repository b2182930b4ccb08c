"""Where statements run: a database, or a transaction of it that is open already."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from sqlalchemy.ext.asyncio import AsyncConnection


class Sql(Protocol):
    """Runs statements; `Database` and `Transaction` are such."""

    is_sqlite: bool

    def reading(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Give a connection for statements that change nothing."""
        ...

    def writing(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Give a connection in a transaction."""
        ...


class Transaction:
    """An open transaction: what is given it in place of a `Database` becomes part of it.

    Args:
        connection: Is in the transaction; its owner commits it or rolls it back.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.is_sqlite = connection.dialect.name == "sqlite"

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """Give the connection of the transaction."""
        yield self.connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """Give the connection of the transaction; the end of the block commits nothing."""
        yield self.connection
