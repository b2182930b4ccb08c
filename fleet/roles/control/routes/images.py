"""`/v1/firmware`: files of firmware and assets that jobs give to devices."""

import asyncio
import errno
from collections import Counter
from typing import Annotated

from fastapi import Path, Query, Request, Response

from fleet.adapters.files.image_store import ImageStore, ImageWriter
from fleet.adapters.sql.image_rows import ImageRow, ImageRows, NewImage
from fleet.adapters.sql.job_rows import JobRows
from fleet.core.permissions import DEVICES_DANGEROUS, DEVICES_READ
from fleet.roles.control.access import Who, milliseconds
from fleet.roles.control.idempotency import HEADER
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.request_pieces import pieces
from fleet.roles.control.routing import RouteNotes, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.images import ImageUpload, StoredImage
from fleet.wire.control.shapes import ListPage, time_of
from fleet.wire.firmware import HEAD_BYTES, image_version, parse_version

ImageId = Annotated[int, Path(ge=1, lt=2**62)]
MOST_IMAGES = 500
"""Images of a tenant."""
LARGEST = 64 * 1024 * 1024
"""Bytes of an image; the largest flash of any board holds half of it."""
MOST_UPLOADS = 4
"""Uploads of all tenants at a time: each takes space on the disk before it is checked. One tenant may have half."""
MOST_BYTES = 4 * 1024 * 1024 * 1024
"""Of all images of a tenant together."""
_BINARY = "application/octet-stream"


class ImageRoutes:
    """Takes, shows and deletes images."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._database = services, services.database
        self._files = image_store(services)
        self._uploads: Counter[int] = Counter()
        """By tenant."""
        notes = RouteNotes(takes=(_BINARY,), refusals=(409, 413, 415, 507))
        routes.add("GET /firmware", self.list, DEVICES_READ)
        routes.add(
            "POST /firmware", self.add, DEVICES_DANGEROUS, model=StoredImage, status=201, streamed=True, notes=notes
        )
        routes.add("GET /firmware/{image}", self.read, DEVICES_READ)
        routes.add("DELETE /firmware/{image}", self.remove, DEVICES_DANGEROUS, model=None, status=204)

    async def list(self, who: Who) -> ListPage[StoredImage]:
        """Return all images, by board and then the newest first."""
        found = await ImageRows(self._database, who.tenant).list()
        return ListPage(items=[_shape(row) for row in found], next=None)

    async def add(self, request: Request, who: Who, about: Annotated[ImageUpload, Query()]) -> Response:
        """Store a file. Firmware must be an ESP32 application that reports the version that is named, if one is.

        To send the same file again changes nothing, so it takes no `Idempotency-Key`.
        """
        if HEADER in request.headers:
            raise Problem(400, "bad-key", f"an upload takes no {HEADER}: send the file again, nothing changes")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _BINARY:
            raise Problem(415, "wrong-type", f"Content-Type must be {_BINARY}")
        if self._uploads.total() >= MOST_UPLOADS or self._uploads[who.tenant] >= MOST_UPLOADS // 2:
            raise Problem(503, "busy", "too many uploads at a time", headers={"Retry-After": "10"})
        self._uploads[who.tenant] += 1
        try:
            with await asyncio.to_thread(self._files.write) as writer:
                head, size = await _receive(request, writer)
                image = NewImage(
                    kind=about.kind,
                    board=about.board,
                    version=_checked(about, writer.sha256, head),
                    sha256=writer.sha256,
                    size=size,
                    created=milliseconds(),
                    created_by=who.actor[:100],
                )
                return await self._store(request, who.tenant, image, writer)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise Problem(507, "storage-full", "the disk with the images is full") from error
        finally:
            self._uploads[who.tenant] -= 1

    async def _store(self, request: Request, tenant: int, image: NewImage, writer: ImageWriter) -> Response:
        async with self._services.changes.begin(request) as change:
            rows = ImageRows(change.sql, tenant)
            known = await rows.named(image.kind, image.board, image.version)
            if known is not None and known.sha256 != image.sha256:
                raise Problem(409, "name-taken", "another file has this board and version: delete it first")
            if known is None:
                await _check_room(rows, image)
            await asyncio.to_thread(writer.keep)
            row = known or await rows.add(image)
            if known is None:
                after = {"kind": row.kind, "board": row.board, "version": row.version, "sha256": row.sha256}
                await change.audit("firmware.add", f"firmware/{row.id}", after=after)
            return change.answer(_shape(row), 201, headers={"Location": f"/v1/firmware/{row.id}"})

    async def read(self, who: Who, image: ImageId) -> StoredImage:
        """Return an image."""
        row = await ImageRows(self._database, who.tenant).read(image)
        if row is None:
            raise not_found("image")
        return _shape(row)

    async def remove(self, request: Request, who: Who, image: ImageId) -> Response:
        """Delete an image that no job needs any more."""
        async with self._services.changes.begin(request) as change:
            rows = ImageRows(change.sql, who.tenant)
            row = await rows.read(image)
            if row is None:
                raise not_found("image")
            for job in await JobRows(change.sql, who.tenant).unfinished():
                if job.body.get(job.kind, {}).get("image") == image:
                    raise Problem(409, "in-use", f"job {job.id} gives it to devices")
            before = {"kind": row.kind, "board": row.board, "version": row.version, "sha256": row.sha256}
            await change.audit("firmware.delete", f"firmware/{image}", before=before)
            if await rows.remove(row):
                await asyncio.to_thread(self._files.remove, row.sha256)
            return change.answer(None, 204)


def image_store(services: ControlServices) -> ImageStore:
    """Return where the files are."""
    settings = services.settings
    return ImageStore(settings.firmware_dir or settings.data_dir / "firmware")


async def _receive(request: Request, writer: ImageWriter) -> tuple[bytes, int]:
    """Write the file of a request; return its first bytes and its size."""
    head, size = b"", 0
    async for piece in pieces(request, LARGEST, "an image"):
        size += len(piece)
        head += piece[: HEAD_BYTES - len(head)] if len(head) < HEAD_BYTES else b""
        await asyncio.to_thread(writer.add, piece)
    return head, size


async def _check_room(rows: ImageRows, image: NewImage) -> None:
    stored = await rows.list()
    if len(stored) >= MOST_IMAGES or sum(row.size for row in stored) + image.size > MOST_BYTES:
        most = f"{MOST_IMAGES} images, and {MOST_BYTES // 2**30} GB of them"
        raise Problem(409, "too-many-images", f"a tenant has at most {most}: delete some first")


def _checked(about: ImageUpload, sha256: str, head: bytes) -> str:
    """Return the version of a file.

    Raises:
        Problem: It is not what was said, or no such file (422).
    """
    if about.sha256 not in ("", sha256):
        raise Problem(422, "bad-image", f"its SHA-256 is {sha256}")
    if about.kind == "assets":
        if not head or not about.version:
            raise Problem(422, "bad-image", "assets need a version, and must not be empty")
        return about.version
    reports = image_version(head)
    if reports is None:
        raise Problem(422, "bad-image", "it is no ESP32 application")
    if parse_version(reports) is None:
        # Firmware aborts on a version that it cannot read, and would install such an image at every start.
        raise Problem(422, "bad-image", f"it reports the version {reports[:64]!r}, which devices cannot compare")
    if about.version not in ("", reports):
        raise Problem(422, "bad-image", f"it reports version {reports}")
    return reports


def _shape(row: ImageRow) -> StoredImage:
    return StoredImage(
        id=row.id,
        kind=row.kind,
        board=row.board,
        version=row.version,
        sha256=row.sha256,
        size=row.size,
        created=time_of(row.created),
        created_by=row.created_by,
    )
