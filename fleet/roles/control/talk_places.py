"""Where pages find the gateway, to which they talk by voice."""

import re
from dataclasses import dataclass

from fleet.roles.control.settings import ControlSettings
from fleet.wire.voice_websocket import PATH

_HOST = re.compile(r"[\w.-]{1,253}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TalkPlaces:
    """Where a page finds the gateway, to which it talks by voice.

    Args:
        url: FLEET_TALK_URL.
        port: Of the gateway.
        tls_port: Of the gateway; None without a certificate.
    """

    url: str | None
    port: int
    tls_port: int | None

    @classmethod
    def by(cls, settings: ControlSettings) -> "TalkPlaces":
        """Return what the settings say."""
        return cls(settings.talk_url, settings.cloud_port, settings.wss_port if settings.tls_cert else None)

    def of(self, host: str) -> tuple[str, ...]:
        """Return the origins of the gateway for a page that was asked for at a host."""
        if self.url is not None:
            return (self.url.removesuffix(PATH),)
        if not _HOST.fullmatch(host):
            return ()
        safe = (f"wss://{host}:{self.tls_port}",) if self.tls_port else ()
        return (f"ws://{host}:{self.port}", *safe)
