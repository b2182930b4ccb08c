"""Keeps what devices answered to jobs as their attributes."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from fleet.adapters.sql.schema import DEVICE
from fleet.wire.control.device_texts import LARGEST_ATTRIBUTES
from fleet.wire.control.strict_json import read_json


async def set_attributes(connection: AsyncConnection, tenant: int, name: str, answers: Mapping[int, str]) -> None:
    """Write what devices answered into their attributes; no JSON stays a text, and what is too long is left out."""
    found = select(DEVICE.c.mac, DEVICE.c.attributes).where(DEVICE.c.tenant == tenant, DEVICE.c.mac.in_(list(answers)))
    changes = []
    for mac, attributes in (await connection.execute(found.with_for_update())).all():
        after = {**attributes, name: _value(answers[mac])}
        if len(repr(after)) <= LARGEST_ATTRIBUTES:
            changes.append({"m": mac, "a": after})
    if changes:
        set_ = update(DEVICE).where(DEVICE.c.mac == bindparam("m"))
        await connection.execute(set_.values(attributes=bindparam("a"), version=DEVICE.c.version + 1), changes)


def _value(text: str) -> Any:
    """Return what PostgreSQL can keep too: it refuses numbers that are not finite, and the transaction with them."""
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return text
