"""Who may connect, kept up to date in one process: keys that are rotated, devices that are revoked."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from fleet.errors import ConfigError
from fleet.store.connect import Store
from fleet.store.revocations import Revocations, RevocationWatch
from fleet.store.watched_file import WatchedFile, write_whole
from fleet.wire.identity import Keys

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class KeysWatch:
    """Reads the keys again whenever their file changes; from a wrong file nothing is taken.

    Args:
        path: The file.
        keys: Are replaced.
    """

    def __init__(self, path: Path, keys: Keys) -> None:
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


class AccessWatch:
    """Keeps revocations: in the keys of this process, in the plugin's file, and at who closes connections.

    Args:
        store: Where the list is.
        keys: Refuse who is revoked.
        export: File for the Mosquitto plugin, a line for each MAC.
        expel: Told which devices were revoked just now; closes their connections.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        export: Path | None = None,
        expel: Callable[[frozenset[str]], None] = lambda _: None,
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

    async def _take(self, macs: frozenset[str], added: frozenset[str]) -> None:
        self._keys.revoke(macs)
        self._expel(added)
        if added:
            log.info("devices revoked", extra={"devices": len(added), "revoked": len(macs)})
        if self._export is not None:
            await asyncio.to_thread(write_whole, self._export, "".join(f"{mac}\n" for mac in sorted(macs)))
