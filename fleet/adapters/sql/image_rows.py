"""Images of one tenant: files of firmware and assets that devices can be given."""

from dataclasses import asdict, dataclass

from sqlalchemy import delete, func, insert, select

from fleet.adapters.sql.given_numbers import new_number
from fleet.adapters.sql.image_schema import IMAGE
from fleet.adapters.sql.transaction import Sql
from fleet.wire.control.images import ImageKind


@dataclass(frozen=True, slots=True)
class NewImage:
    """A file, for a board. `version` is that of the firmware, or what people call the assets."""

    kind: ImageKind
    board: str
    version: str
    sha256: str
    size: int
    created: int
    created_by: str


@dataclass(frozen=True, slots=True)
class ImageRow:
    """A stored image; see `NewImage`."""

    id: int
    tenant: int
    kind: ImageKind
    board: str
    version: str
    sha256: str
    size: int
    created: int
    created_by: str


class ImageRows:
    """Makes, reads and deletes images of one tenant. All methods raise `Unavailable` without the database.

    Args:
        sql: The database, or a transaction.
        tenant: Whose images.
    """

    def __init__(self, sql: Sql, tenant: int) -> None:
        self._sql, self._own = sql, IMAGE.c.tenant == tenant
        self._tenant = tenant

    async def add(self, image: NewImage) -> ImageRow:
        """Add an image; there must be none of the same kind, board and version."""
        values = {**asdict(image), "tenant": self._tenant, **new_number(self._sql, IMAGE)}
        async with self._sql.writing() as connection:
            return ImageRow(*(await connection.execute(insert(IMAGE).values(values).returning(IMAGE))).one())

    async def list(self) -> list[ImageRow]:
        """Return all images, by board and then the newest first."""
        found = select(IMAGE).where(self._own).order_by(IMAGE.c.board, IMAGE.c.id.desc())
        async with self._sql.reading() as connection:
            return [ImageRow(*row) for row in await connection.execute(found)]

    async def read(self, image: int) -> ImageRow | None:
        """Return an image; None if this tenant has no such one."""
        async with self._sql.reading() as connection:
            row = (await connection.execute(select(IMAGE).where(self._own, IMAGE.c.id == image))).one_or_none()
        return None if row is None else ImageRow(*row)

    async def named(self, kind: ImageKind, board: str, version: str) -> ImageRow | None:
        """Return the image of a board with a version."""
        c = IMAGE.c
        found = select(IMAGE).where(self._own, c.kind == kind, c.board == board, c.version == version)
        async with self._sql.reading() as connection:
            row = (await connection.execute(found)).one_or_none()
        return None if row is None else ImageRow(*row)

    async def remove(self, image: ImageRow) -> bool:
        """Delete an image; return whether no tenant has another one with this file."""
        others = select(func.count()).select_from(IMAGE).where(IMAGE.c.sha256 == image.sha256)
        async with self._sql.writing() as connection:
            await connection.execute(delete(IMAGE).where(self._own, IMAGE.c.id == image.id))
            return (await connection.execute(others)).scalar_one() == 0
