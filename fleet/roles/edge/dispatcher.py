"""What an edge does with the messages in its inbox."""

import logging
import re
from collections.abc import Callable

from fleet.ground.log import fields
from fleet.roles.edge.registry import SessionRegistry
from fleet.roles.edge.services import EdgeServices
from fleet.roles.edge.session import EdgeSession
from fleet.wire import dialects
from fleet.wire.edge_messages import CloseSessionCommand, EdgeCommand, OpenSessionCommand, SessionSilentEvent
from fleet.wire.toc import FRAME_MS, SAMPLE_RATES

log = logging.getLogger(__name__)

_KEY = re.compile("[0-9a-fA-F]{32}")


class EdgeDispatcher:
    """Gives each message to its session.

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

    def take(self, command: EdgeCommand, now: float) -> None:
        """Do what one message says; a message for a session that is over is counted."""
        session = self._registry.find(command.device, command.session)
        if isinstance(command, OpenSessionCommand):
            if session is None:
                with fields(session=command.session, device=command.device):
                    self._open(command, now)
        elif session is None:
            self._services.counters["mail_without_session"] += 1
        elif isinstance(command, CloseSessionCommand):
            self._registry.remove(command.device)
        else:
            session.take(command, now)

    def _open(self, command: OpenSessionCommand, now: float) -> None:
        reason = self._refuse(command)
        if reason:
            log.warning("session refused", extra={"reason": reason})
            self._services.tell(
                command.shard, SessionSilentEvent(device=command.device, session=command.session, reason="unused")
            )
            return
        session = EdgeSession(command, dialects.find(command.dialect), self._services, now)
        self._registry.add(session)
        self._on_opened(session, now)

    def _refuse(self, command: OpenSessionCommand) -> str | None:
        if not dialects.capabilities(command.dialect).audio:
            return "unknown dialect"
        if not _KEY.fullmatch(command.key):
            return "bad key"
        if not {command.uplink_frame_ms, command.downlink_frame_ms} <= set(FRAME_MS):
            return "unknown frame length"
        if not {command.uplink_rate, command.downlink_rate} <= set(SAMPLE_RATES):
            return "unknown sample rate"
        full = len(self._registry) >= self._services.settings.edge_sessions
        return "too many sessions" if full else None
