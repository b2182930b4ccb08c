"""Show apologies on the screen after a session that its user did not end."""

import asyncio
import functools
import logging

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
_STALE_SECONDS = 30.0
"""Time after a goodbye in which a device may still send a message that it wrote before it read the goodbye.

In auto mode it answers `tts stop` with `listen start` before it reads the goodbye. A tool that blocks its main loop (a
photo: 30 s) delays that.
"""


class Apologies:
    """Shows apologies when the device is connected and idle.

    A pending apology is stored in the device's record, so that another worker can show it, or a later connection of the
    device.

    Args:
        store: Has the ends of sessions.
        settings: The languages.
    """

    def __init__(self, store: Store, settings: WorkerSettings) -> None:
        self._endings = Endings(store)
        self._devices = Devices(store)
        self._settings = settings

    def show_later(self, shard: Shard, mac: str) -> None:
        """Show the pending apology after the device has read the goodbye that was just sent.

        Raises:
            Unavailable: The shard is being given up.
        """
        shard.spawn(f"alert {mac}", self._show_later(shard, mac))

    async def show(self, shard: Shard, mac: str) -> None:
        """Show the pending apology now, if there is one.

        Raises:
            Fenced: Another worker owns the shard.
            Unavailable: Redis or the broker is away; the apology stays pending.
        """
        due = await self._endings.due(mac)
        name = next((one for one in PHRASES if due and one == due.name), None)
        if due is None or name is None:
            return
        shard.publish(mac, self.alert(name, due.language), (await self._devices.read(mac)).dialect)
        await self._endings.mark_shown(shard.owner, mac, due.epoch)
        log.info("apology shown", extra={"device": mac, "phrase": name})

    def alert(self, name: Phrase, reported: str) -> AlertCommand:
        """Return an alert that says why the server does not serve a device.

        Args:
            name: The reason.
            reported: The language that the device reported; empty if unknown.
        """
        language = choose_language(self._settings.language, self._settings.languages, reported)
        return AlertCommand(phrase("error", language), phrase(name, language), "sad")

    async def goodbye_just_sent(self, mac: str, session: str) -> bool:
        """Return whether a goodbye for a session was sent so lately that the device needs no second one.

        A second goodbye clears the screen (application.cc, OnAudioChannelClosed), and with it the apology.

        Raises:
            Unavailable: Redis is away.
        """
        age = await self._endings.goodbye_age(mac, session)
        return age is not None and age < _STALE_SECONDS

    async def _show_later(self, shard: Shard, mac: str) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        await shard.executor.run(mac, functools.partial(self.show, shard, mac))
