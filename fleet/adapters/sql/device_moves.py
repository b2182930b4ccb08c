"""Moves devices from one tenant to another."""

from sqlalchemy import delete, func, insert, select, update

from fleet.adapters.sql.desired_rows import leave_desired
from fleet.adapters.sql.device_conditions import search_text
from fleet.adapters.sql.mac_numbers import mac_number
from fleet.adapters.sql.schema import DEVICE, DEVICE_TAG, GROUP_MEMBER, TENANT
from fleet.adapters.sql.transaction import Sql


class DeviceMoves:
    """Moves devices. All methods raise `Unavailable` while the database does not answer.

    Args:
        sql: The database, or a transaction.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def tenant(self, slug: str) -> int | None:
        """Return the number of a tenant; None if there is no such tenant."""
        async with self._sql.reading() as connection:
            found: int | None = (
                await connection.execute(select(TENANT.c.id).where(TENANT.c.slug == slug))
            ).scalar_one_or_none()
            return found

    async def first_tenant(self) -> int:
        """Return the number of the site's own tenant."""
        async with self._sql.reading() as connection:
            return int((await connection.execute(select(func.min(TENANT.c.id)))).scalar_one())

    async def take(self, mac: str, tenant: int) -> bool:
        """Make a device one of a tenant whose user holds it in the hand; return whether it is one now.

        A device that nobody registered or bound moves here; one that another tenant has stays there.
        """
        number = mac_number(mac)
        async with self._sql.writing() as connection:
            of = select(DEVICE.c.tenant, DEVICE.c.stranger).where(DEVICE.c.mac == number).with_for_update()
            row = (await connection.execute(of)).one_or_none()
            if row is None:
                values = {"mac": number, "tenant": tenant, "search": search_text(number, "", "", "")}
                await connection.execute(insert(DEVICE).values(values))
                return True
            if row.tenant == tenant:
                await connection.execute(update(DEVICE).where(DEVICE.c.mac == number).values(stranger=False))
                return True
        return row.stranger and await self.move(mac, row.tenant, tenant)

    async def move(self, mac: str, source: int, target: int) -> bool:
        """Give a device with its name, notes and tags to another tenant; return whether it was one of `source`.

        It leaves its groups, its agent and its desired state, which belong to the tenant. Its history stays with the
        old tenant.
        """
        number = mac_number(mac)
        async with self._sql.writing() as connection:
            own = select(DEVICE.c.mac).where(DEVICE.c.mac == number, DEVICE.c.tenant == source).with_for_update()
            if (await connection.execute(own)).first() is None:
                return False
            values = {"tenant": target, "agent": "", "stranger": False, "version": DEVICE.c.version + 1}
            await connection.execute(update(DEVICE).where(DEVICE.c.mac == number).values(values))
            await connection.execute(update(DEVICE_TAG).where(DEVICE_TAG.c.mac == number).values(tenant=target))
            await connection.execute(delete(GROUP_MEMBER).where(GROUP_MEMBER.c.mac == number))
            await leave_desired(connection, number)
        return True
