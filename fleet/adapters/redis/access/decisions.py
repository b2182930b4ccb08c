"""What an operator decides about a device, as the steps that belong together.

Each decision changes the admission first and the list of refused passwords second. A kill in between leaves an
admission whose new generation the owner of the shard requires by itself (`fleet.adapters.redis.access.renewals`); a
repeated decision ends the same.
"""

from dataclasses import dataclass

from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.access.claims import Claim, Claims
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store


@dataclass(frozen=True, slots=True)
class Asker:
    """A client that is to own a MAC; without a Client-Id, the first one that asks."""

    mac: str
    client: str = ""
    serial: str = ""


class Decisions:
    """Decides about devices. All methods raise `Unavailable` while Redis does not answer."""

    def __init__(self, store: Store) -> None:
        self._admissions, self._claims = Admissions(store), Claims(store)
        self._revocations, self._activations = Revocations(store), Activations(store)

    async def by_code(self, code: str) -> Asker | None:
        """Return who shows a code, and make the code invalid; None if nobody shows it now."""
        found = await self._activations.claim(code.strip().replace(" ", ""))
        return Asker(*found) if found else None

    async def bind(self, who: Asker, until: int) -> int | None:
        """Make a client the owner of a MAC.

        Args:
            who: The client.
            until: When passwords of an earlier owner become invalid, in seconds since 1970; 0: now.

        Returns:
            The generation of the new password if passwords of another client become invalid, else None.
        """
        if who.client:
            await self._claims.lift_refusal(who.mac, who.client)
        generation = await self._admissions.bind(who.mac, who.client, who.serial, until=until)
        await self._claims.settle(who.mac, who.client)
        if generation is not None and not until:
            await self._revocations.require(who.mac, generation)
        return generation

    async def unbind(self, mac: str) -> bool:
        """Remove the owner of a MAC and refuse its passwords; return whether it had one."""
        had, generation = await self._admissions.unbind(mac)
        await self._revocations.require(mac, generation)
        return had

    async def revoke(self, mac: str) -> bool:
        """Refuse a device; return whether that is new.

        Raises:
            Overloaded: Too many devices are revoked.
        """
        changed = await self._revocations.add(mac)
        if changed:
            await self.renew(mac)
        return changed

    async def renew(self, mac: str) -> None:
        """Refuse the passwords that a device has; its owner may get a new one."""
        await self._revocations.require(mac, await self._admissions.renew(mac))

    async def unrevoke(self, mac: str) -> bool:
        """Allow a device again; return whether it was revoked."""
        return await self._revocations.remove(mac)

    async def claims_of(self, mac: str, client: str = "") -> list[Claim]:
        """Return the claims of a MAC whose Client-Id begins with some characters, or is exactly these."""
        found = [claim for claim in await self._claims.of(mac) if claim.client.startswith(client)]
        exact = [claim for claim in found if claim.client == client]
        return exact if len(found) > 1 and exact else found

    async def refuse(self, claim: Claim) -> None:
        """Refuse a claim, and its client for 30 days."""
        await self._claims.refuse(claim)
