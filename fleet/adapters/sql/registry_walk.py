"""Walks over the devices of all tenants in bounded pages, to compare them with Redis."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from sqlalchemy import Select, func, select

from fleet.adapters.sql.database import Database
from fleet.adapters.sql.mac_numbers import mac_number, mac_text
from fleet.adapters.sql.schema import DEVICE, TENANT

PAGE = 100


class RegistryWalk:
    """Reads MACs of the registry. All methods raise `Unavailable` while the database does not answer."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> AsyncIterator[list[str]]:
        """Yield pages of all devices, in the order of MACs."""
        async for page in self._pages(select(DEVICE.c.mac)):
            yield page

    async def online(self) -> AsyncIterator[list[str]]:
        """Yield pages of the devices that the registry has as connected."""
        async with self._database.reading() as connection:
            tenants = list((await connection.execute(select(TENANT.c.id))).scalars())
        for tenant in tenants:  # The index of (tenant, online, MAC) has them in the order of MACs.
            of = select(DEVICE.c.mac).where(DEVICE.c.tenant == tenant, DEVICE.c.online.is_(True))
            async for page in self._pages(of):
                yield page

    async def online_count(self) -> int:
        """Return how many devices the registry has as connected."""
        online = select(func.count()).where(DEVICE.c.tenant.in_(select(TENANT.c.id)), DEVICE.c.online.is_(True))
        async with self._database.reading() as connection:
            return int((await connection.execute(online)).scalar_one())

    async def newest_boot(self) -> float:
        """Return when the last bootstrap was that the registry knows of (s since 1970); 0 for none."""
        newest = 0
        async with self._database.reading() as connection:
            for tenant in list((await connection.execute(select(TENANT.c.id))).scalars()):
                last = select(func.max(DEVICE.c.last_boot)).where(DEVICE.c.tenant == tenant)
                newest = max(newest, (await connection.execute(last)).scalar_one() or 0)
        return newest / 1000

    async def without_row(self, macs: Sequence[str]) -> list[str]:
        """Return those of at most `PAGE` MACs that the registry does not have."""
        return await self._without(macs, select(DEVICE.c.mac))

    async def not_online(self, macs: Sequence[str]) -> list[str]:
        """Return those of at most `PAGE` MACs that the registry does not have as connected."""
        return await self._without(macs, select(DEVICE.c.mac).where(DEVICE.c.online.is_(True)))

    async def _without(self, macs: Sequence[str], found: Select[Any]) -> list[str]:
        numbers = [mac_number(mac) for mac in macs]
        async with self._database.reading() as connection:
            there = set((await connection.execute(found.where(DEVICE.c.mac.in_(numbers)))).scalars())
        return [mac_text(number) for number in numbers if number not in there]

    async def _pages(self, found: Select[Any]) -> AsyncIterator[list[str]]:
        after = -1
        while True:
            page = found.where(DEVICE.c.mac > after).order_by(DEVICE.c.mac).limit(PAGE)
            async with self._database.reading() as connection:
                numbers = list((await connection.execute(page)).scalars())
            yield [mac_text(number) for number in numbers]
            if len(numbers) < PAGE:
                return
            after = numbers[-1]
