"""How the devices of a crowd install firmware."""

from fleet.wire.firmware import HEAD_BYTES, image_version, parse_version
from fleet.workbench.sim.crowd.kinds import kind_of
from fleet.workbench.sim.crowd.ledger import Ledger
from fleet.workbench.sim.crowd.member import Member
from fleet.workbench.sim.crowd.shares import Shares, chance
from fleet.workbench.sim.crowd.web import Web
from fleet.workbench.sim.messages.message import JsonObject, text


class Upgrades:
    """Installs images.

    Args:
        web: From where.
        shares: How many do not boot; may be replaced while it runs.
        seed: Of the draws.
        ledger: Counts them.
    """

    def __init__(self, web: Web, shares: Shares, seed: int, ledger: Ledger) -> None:
        self.shares = shares
        self._web, self._seed, self._ledger = web, seed, ledger

    async def take(self, device: Member, offer: JsonObject) -> bool:
        """Install what bootstrap offers, if it is newer; return whether the device restarts for that."""
        wanted, running = parse_version(text(offer, "version") or ""), parse_version(device.kind.profile.version)
        if wanted is None or running is None or wanted <= running:
            return False
        return await self.install(device, text(offer, "url") or "")

    async def install(self, device: Member, url: str) -> bool:
        """Install an image; return whether all of it came. One that does not boot leaves what was there."""
        content = await self._web.fetch(device.number, device.mac, url)
        version = image_version(content[:HEAD_BYTES])
        if version is None:
            self._ledger.counts["images without effect"] += 1
            return False
        if chance(self._seed, device.mac, version, "brick") < self.shares.brick:
            self._ledger.counts["images that do not boot"] += 1
            return True
        device.kind = kind_of(device.profile, version)
        self._ledger.counts["upgrades"] += 1
        return True
