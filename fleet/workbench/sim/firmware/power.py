"""Power of the device: boots it, and boots it again after a restart, until power-off."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fleet.ground.errors import Unavailable
from fleet.ground.tasks import single_exception
from fleet.workbench.sim.bootstrap.ota import Bootstrap
from fleet.workbench.sim.firmware.boot import Boot
from fleet.workbench.sim.firmware.upgrade import install, running_profile, start_installed
from fleet.workbench.sim.network.download import download
from fleet.workbench.sim.network.https import trusting
from fleet.workbench.sim.profiles.identity import Identity, headers
from fleet.workbench.sim.runtime.context import DeviceContext


class Power:
    """Runs one boot after the other.

    Args:
        context: What the device keeps over a restart.
        identity: Who the device is.
        ota_url: Where it boots from.
        tls: Trust for HTTPS, and for MQTT on port 8883; the public authorities without it.
    """

    def __init__(self, context: DeviceContext, identity: Identity, ota_url: str, tls: ssl.SSLContext | None) -> None:
        self._context = context
        self._identity = identity
        self._ota_url = ota_url
        self._tls = tls
        self._worst_lag = 0.0
        self.current: Boot | None = None

    @property
    def boot(self) -> Boot:
        """The boot that runs.

        Raises:
            Unavailable: The device is switched off or boots.
        """
        if self.current is None:
            raise Unavailable("the simulated device is switched off")
        return self.current

    @property
    def ready(self) -> bool:
        """Whether the device is up, and online if it is at all without a conversation."""
        session_only = self._context.profile.link == "session"
        return self.current is not None and (session_only or self.current.mqtt.up)

    @property
    def worst_lag(self) -> float:
        """The longest that this process came late, in seconds."""
        return max(self._worst_lag, self.current.loop_lag.worst if self.current else 0.0)

    @asynccontextmanager
    async def on(self, seconds: float) -> AsyncIterator[None]:
        """Power on, and enter the block once MQTT is up; leaving it is power-off.

        Raises:
            Unavailable: Bootstrap gave nothing usable, or MQTT was not up after so many seconds.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                with trusting(self._tls):  # whatever it starts inherits that
                    life = tasks.create_task(self._live(), name="sim-device")
                try:
                    if not await self._context.signal.within(seconds, lambda: self.ready):
                        raise Unavailable(f"MQTT was not up within {seconds:g} s of power-on")
                    yield
                finally:
                    life.cancel()
        except BaseExceptionGroup as group:
            raise single_exception(group) from None

    async def _live(self) -> None:
        journal = self._context.journal
        while True:
            start_installed(self._context)
            profile = running_profile(self._context)
            journal.note("boot", profile=profile.name, mac=self._identity.mac)
            await self._fetch_assets()
            bootstrap = Bootstrap(self._ota_url, self._identity, profile, journal)
            access = await bootstrap.fetch()
            if bootstrap.firmware and await install(bootstrap.firmware, self._context):
                await asyncio.sleep(profile.timing.reboot)
                continue
            self.current = Boot(self._context, access, self._tls)
            self._context.signal.notify()
            try:
                await self.current.run()
            finally:
                self._worst_lag = self.worst_lag
                self.current = None
                self._context.turns.end("closed")

    async def _fetch_assets(self) -> None:
        """Try once what a tool ordered before the start."""
        url, self._context.board.assets_url = self._context.board.assets_url, ""
        if not url:
            return
        found = await download(url, headers(self._identity, running_profile(self._context)))
        self._context.journal.judge(found.findings)
        self._context.journal.note("assets", url=url, bytes=len(found.content), reason=found.reason)
