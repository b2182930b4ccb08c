"""What an edge does with its mail."""

import logging
import re
from collections.abc import Callable
from typing import Final

from fleet.ground.log import fields
from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.session import EdgeSession
from fleet.wire import dialect_xiaozhi
from fleet.wire.dialect import Dialect
from fleet.wire.edge_messages import CloseSessionCommand, EdgeCommand, OpenSessionCommand, SessionSilentEvent

log = logging.getLogger(__name__)

DIALECTS: Final[dict[str, Dialect]] = {dialect.name: dialect for dialect in (dialect_xiaozhi.DIALECT,)}

_KEY = re.compile("[0-9a-fA-F]{32}")


class EdgeDispatcher:
    """Sorts mail.

    Args:
        registry: The edge's sessions.
        services: Of the edge.
        on_opened: Called with each new session and `now`.
    """

    def __init__(
        self, registry: SessionRegistry, services: EdgeServices, on_opened: Callable[[EdgeSession, float], None]
    ) -> None:
        self._registry = registry
        self._services = services
        self._on_opened = on_opened

    def take(self, mail: EdgeCommand, now: float) -> None:
        """Do what one mail says; mail for a session that is over is counted."""
        session = self._registry.find(mail.device, mail.session)
        if isinstance(mail, OpenSessionCommand):
            if session is None:
                with fields(session=mail.session, device=mail.device):
                    self._open(mail, now)
        elif session is None:
            self._services.counters["mail_without_session"] += 1
        elif isinstance(mail, CloseSessionCommand):
            self._registry.remove(mail.device)
        else:
            session.take(mail, now)

    def _open(self, mail: OpenSessionCommand, now: float) -> None:
        reason = self._refuse(mail)
        if reason:
            log.warning("session refused", extra={"reason": reason})
            self._services.tell(
                mail.shard, SessionSilentEvent(device=mail.device, session=mail.session, reason="unused")
            )
            return
        session = EdgeSession(mail, DIALECTS[mail.dialect], self._services, now)
        self._registry.add(session)
        self._on_opened(session, now)

    def _refuse(self, mail: OpenSessionCommand) -> str | None:
        if mail.dialect not in DIALECTS:
            return "unknown dialect"
        if not _KEY.fullmatch(mail.key):
            return "bad key"
        if not {mail.uplink_frame_ms, mail.downlink_frame_ms} <= set(dialect_xiaozhi.FRAME_MS):
            return "unknown frame length"
        if not {mail.uplink_rate, mail.downlink_rate} <= set(dialect_xiaozhi.SAMPLE_RATES):
            return "unknown sample rate"
        full = len(self._registry) >= self._services.settings.edge_sessions
        return "too many sessions" if full else None
