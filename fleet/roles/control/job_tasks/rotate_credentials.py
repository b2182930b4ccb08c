"""The kind `rotate_credentials`: restarts a device, and waits until it is connected with the new key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_evidence import Watched
from fleet.adapters.sql.job_executions import CallEnd, SentCall
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.job_kinds.rotate_credentials import HAS_IT
from fleet.roles.control.job_tasks.calls import CallTask

RETURN_MS: Final = 180_000
"""How long a device may take to come back."""
_DECODER = msgspec.json.Decoder(dict[str, Any])


class RotationTask(CallTask):
    """Restarts devices; a connection with the key is the success. That a device restarted proves nothing."""

    async def start(self, sent: Sequence[SentCall]) -> Sequence[CallEnd]:
        """Restart devices, but for those that came with the key by themselves."""
        keys = await self._calls.keys([mac_text(one.mac) for one in sent])
        has = [one for one in sent if keys.get(mac_text(one.mac)) == self._body["key"]]
        ends = [CallEnd(one.job, one.mac, one.attempt, "ok", HAS_IT) for one in has]
        return [*ends, *await super().start([one for one in sent if one not in has])]

    def judge(self, end: CallEnd, now: int) -> CallEnd:
        """Wait for the connection; a restart whose outcome nobody knows may have happened, too."""
        if end.state not in ("ok", "unknown"):
            return end
        return replace(end, state="verifying", text="restarts", due=now + RETURN_MS)

    def witness(self, one: Watched, event: StoredEvent) -> CallEnd | None:
        """Take a connection with the key; where the broker names no key, one after the restart."""
        of, key = (one.job, one.mac, one.attempt), _key(event.data)
        if key == self._body["key"]:
            return CallEnd(*of, "ok", f"connected with {key}")
        if not key and one.state == "verifying":
            return CallEnd(*of, "ok", "connected again; the broker does not say with which key")
        return None


def _key(data: str) -> str:
    try:
        return str(_DECODER.decode(data).get("key", ""))
    except ValueError:
        return ""
