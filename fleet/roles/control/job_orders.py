"""What is stored of jobs that give devices an image, and what the API shows of that."""

import secrets
from typing import Any, TypeVar

from fleet.adapters.sql.image_rows import ImageRow, ImageRows
from fleet.adapters.sql.job_rows import JobRow
from fleet.roles.control.job_policies import body_of
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.services import ControlServices
from fleet.wire.control.images import AssetsOrder, FirmwareOrder
from fleet.wire.control.jobs import JobRequest
from fleet.wire.job_states import COMMAND

_Order = TypeVar("_Order", FirmwareOrder, AssetsOrder)


async def stored_body(services: ControlServices, tenant: int, job: JobRequest, now: int) -> dict[str, Any]:
    """Return what is stored of a request, with what is known of the image that it names.

    Raises:
        Problem: There is no such image (404), it is of another kind, or the name is that of commands (422), or devices
            could not be told the address (409).
    """
    if job.name == COMMAND:
        raise Problem(422, "invalid", f"jobs named {COMMAND} are made by /v1/devices/MAC/commands; choose another name")
    asked = job.firmware or job.assets
    if asked is None:
        return body_of(job)
    image = await ImageRows(services.database, tenant).read(asked.image)
    if image is None:
        raise not_found("image")
    if image.kind != job.kind:
        raise Problem(422, "invalid", f"the image {image.id} is {image.kind}")
    address = services.settings.http_public or ""
    if not address and (job.assets or (job.firmware and job.firmware.how == "push")):
        raise Problem(409, "no-address", "set FLEET_HTTP_PUBLIC: devices must be told where they download")
    return {**body_of(job), **order_of(job, image, address, now)}


def order_of(job: JobRequest, image: ImageRow, address: str, now: int) -> dict[str, Any]:
    """Return what else is stored of a job that gives devices an image.

    Args:
        job: Of the kind `firmware` or `assets`.
        image: What it gives them.
        address: Of the api, as devices reach it; may be empty where they need not be told.
        now: In ms since 1970.
    """
    asked = job.firmware or job.assets
    assert asked is not None  # noqa: S101 - JobRequest checks it
    known = {"board": image.board, "version": image.version, "sha256": image.sha256, "url": address}
    until = now + job.policy.expires_seconds * 1000
    return {job.kind: {**asked.model_dump(), **known, "until": until, "secret": secrets.token_hex(32)}}


def order_shape(shape: type[_Order], row: JobRow) -> _Order | None:
    """Return what was asked, as the API shows it; None for a job of another kind."""
    order = row.body.get({FirmwareOrder: "firmware", AssetsOrder: "assets"}[shape])
    return shape(**{name: order[name] for name in shape.model_fields}) if order else None
