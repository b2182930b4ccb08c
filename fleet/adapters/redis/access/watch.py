"""Keeps credentials up to date in one process: rotated keys, revoked devices, generations."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from fleet.adapters.files.watched_file import WatchedFile, write_whole
from fleet.adapters.redis.access.revocation_watch import Access, Change, RevocationWatch
from fleet.adapters.redis.access.revocations import Revocations
from fleet.adapters.redis.client.store import Store
from fleet.ground.errors import ConfigError
from fleet.wire.identity import CredentialKeys

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class KeysWatch:
    """Reads the keys again whenever their file changes; an invalid file changes nothing.

    Args:
        path: The file.
        keys: The keys to replace.
    """

    def __init__(self, path: Path, keys: CredentialKeys) -> None:
        self._file = WatchedFile(path)
        self._keys = keys
        self._fault = ""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Look once."""
        before = self._keys.ids
        try:
            text = self._file.news()
            if text is None:
                return
            self._keys.replace(text)
        except ConfigError as error:
            if str(error) != self._fault:
                log.warning("keys stay as they were", extra={"reason": str(error)})
            self._fault = str(error)
            return
        self._fault = ""
        if self._keys.ids != before:
            log.info("keys changed", extra={"keys": ",".join(self._keys.ids)})


Expel = Callable[[frozenset[str] | None], None]
"""Closes those connections of these devices (None: of all devices) whose credentials `keys` refuses now."""


class AccessWatch:
    """Applies the list of refused credentials to this process's keys, the plugin's file and live connections.

    Args:
        store: Holds the list.
        keys: Refuse revoked devices and generations below the minimum.
        export: File for the Mosquitto plugin; mosquitto/README.md has its syntax.
        expel: Closes connections.
    """

    def __init__(
        self, store: Store, keys: CredentialKeys, export: Path | None = None, expel: Expel = lambda _: None
    ) -> None:
        self._keys = keys
        self._export = export
        self._expel = expel
        self._watch = RevocationWatch(Revocations(store), self._take)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._watch.run()

    async def look(self) -> None:
        """Look once.

        Raises:
            Unavailable: Redis did not answer.
            OSError: The plugin's file cannot be written.
        """
        await self._watch.look()

    async def _take(self, access: Access, change: Change) -> None:
        self._keys.revoke(access.revoked)
        self._keys.require(access.minima)
        self._expel(None if change.everyone else change.revoked | change.raised)
        if change.revoked or change.raised or change.everyone:
            fields = {"revoked": len(change.revoked), "raised": len(change.raised), "minimum": access.minima.default}
            log.info("credentials count no longer", extra=fields)
        if self._export is not None:
            await asyncio.to_thread(write_whole, self._export, lines(access))


def lines(access: Access) -> Iterator[str]:
    """Return the lines of the plugin's file; the line for all devices is the first."""
    if access.minima.default:
        yield f">={access.minima.default} *\n"
    yield from (f">={generation} {mac}\n" for mac, generation in access.minima.macs.items())
    yield from (f"{mac}\n" for mac in access.revoked)
