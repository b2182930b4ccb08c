"""Apologies on the screen: why a session ended that its user did not end."""

import asyncio
import logging
from dataclasses import dataclass

from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.devices import Devices
from fleet.adapters.redis.sessions.endings import Endings
from fleet.core.text.phrases import PHRASES, Phrase, choose_language, phrase
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.messages import AlertCommand

log = logging.getLogger(__name__)

PAUSE_SECONDS = 0.5
"""From goodbye to alert: firmware's transition to idle clears the screen (device contract 3.2: at least 300 ms)."""
_ECHO_SECONDS = 30.0
"""For so long a device may still send a message that it wrote before it read the goodbye.

In auto mode it answers `tts stop` with `listen start` before it reads the goodbye; a tool that holds up its main loop
(a photo: 30 s) delays that.
"""


class Apologies:
    """Shows them when the device is connected and idle.

    What is owed is in the device's record, so that another worker, or a later connection of the device, finds it.

    Args:
        store: Where the ends of sessions are kept.
        settings: The languages.
    """

    def __init__(self, store: Store, settings: WorkerSettings) -> None:
        self._endings = Endings(store)
        self._devices = Devices(store)
        self._settings = settings

    def later(self, shard: Shard, mac: str) -> None:
        """Show what is owed after the device has read the goodbye that was sent just now.

        Raises:
            Unavailable: The shard is being given up.
        """
        shard.spawn(f"alert {mac}", self._show_later(shard, mac))

    async def show(self, shard: Shard, mac: str) -> None:
        """Show what is owed now, if anything is.

        Raises:
            Fenced: The shard is another worker's now.
            Unavailable: Redis or the broker is away; it is still owed.
        """
        due = await self._endings.due(mac)
        name = next((one for one in PHRASES if due and one == due.name), None)
        if due is None or name is None:
            return
        shard.publish(mac, self.alert(name, due.language), (await self._devices.read(mac)).dialect)
        await self._endings.shown(shard.owner, mac, due.epoch)
        log.info("apology shown", extra={"device": mac, "phrase": name})

    def alert(self, name: Phrase, reported: str) -> AlertCommand:
        """Return an alert that says why the server does not serve a device.

        Args:
            name: The reason.
            reported: The language that the device reported of itself; empty when unknown.
        """
        language = choose_language(self._settings.language, self._settings.languages, reported)
        return AlertCommand(phrase("error", language), phrase(name, language), "sad")

    async def just_ended(self, mac: str, session: str) -> bool:
        """Whether the device was sent a goodbye for a session so shortly ago that a second one would be wrong.

        A second goodbye clears the screen (application.cc, OnAudioChannelClosed), and with it the apology.

        Raises:
            Unavailable: Redis is away.
        """
        age = await self._endings.goodbye_age(mac, session)
        return age is not None and age < _ECHO_SECONDS

    async def _show_later(self, shard: Shard, mac: str) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await shard.executor.run(mac, _OwedApology(self, shard, mac))


@dataclass(frozen=True, slots=True)
class _OwedApology:
    """An apology that is shown when the device's earlier work is done."""

    apologies: Apologies
    shard: Shard
    mac: str

    async def run(self) -> None:
        await self.apologies.show(self.shard, self.mac)
