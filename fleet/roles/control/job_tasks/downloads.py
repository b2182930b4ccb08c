"""What the kinds `firmware` and `assets` have in common: each device is offered a download of its own."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from fleet.adapters.redis.devices.offers import DeviceOffer, Offers
from fleet.adapters.redis.shards.job_calls import JobCalls
from fleet.adapters.sql.event_rows import StoredEvent
from fleet.adapters.sql.job_executions import NEVER, CallEnd, SentCall
from fleet.adapters.sql.job_rows import JobRow
from fleet.adapters.sql.mac_numbers import mac_text
from fleet.core.job_kinds.firmware import VERIFY_MS
from fleet.roles.control.access import milliseconds
from fleet.roles.control.job_tasks.calls import CallTask, call_name
from fleet.wire.firmware_offer import FirmwareOffer, offer_name
from fleet.wire.operator_calls import OFFLINE, OperatorCall


class DownloadTask(CallTask):
    """Offers a file to each device before it is called.

    Args:
        job: Has `order` in its body: the request's, with what is known of the image, a secret, and the address of the
            api where devices are told it.
        calls: Hands calls over.
        offers: Keeps the offers.
    """

    def __init__(self, job: JobRow, order: Mapping[str, Any], calls: JobCalls, offers: Offers) -> None:
        super().__init__(job, calls)
        self.order, self._offers = order, offers

    def address(self, one: SentCall) -> str:
        """Return where a device downloads."""
        return f"{self.order['url']}/xiaozhi/firmware/{offer_name(mac_text(one.mac), self._offer(one))}.bin"

    def with_arguments(self, one: SentCall, arguments: dict[str, Any]) -> OperatorCall:
        """Return the call of one device, with arguments of its own."""
        found = self.call(mac_text(one.mac), call_name(one.job, one.attempt))
        return msgspec.structs.replace(found, arguments=arguments)

    async def offer(self, sent: Sequence[SentCall], until: int, board: str = "") -> list[CallEnd]:
        """Offer the file until a time; with a board also at bootstrap. Return the ends of devices that are unknown."""
        given = [DeviceOffer(mac_text(one.mac), self._offer(one), until, board) for one in sent]
        missing = await self._offers.put(self._calls.fence, given)
        gone = [one for one in sent if mac_text(one.mac) in missing]
        return [CallEnd(one.job, one.mac, one.attempt, "waiting", OFFLINE, NEVER) for one in gone]

    def _offer(self, one: SentCall) -> FirmwareOffer:
        offer, key = offer_id(one.job, one.attempt), bytes.fromhex(self.order["secret"])
        secret = hmac.new(key, f"{one.mac} {offer}".encode(), hashlib.sha256).hexdigest()[:32]
        return FirmwareOffer(
            id=offer,
            file=self.order["sha256"],
            secret=secret,
            version=self.order["version"],
            force=bool(self.order.get("force")),
        )

    def judge(self, end: CallEnd, now: int) -> CallEnd:
        """Wait for evidence where the call was made, or may have been."""
        if end.state in ("ok", "unknown"):
            return replace(end, state="verifying", text="", due=now + VERIFY_MS)
        return end

    async def release(self, ends: Sequence[CallEnd]) -> None:
        """Withdraw the offers: nothing is installed after its execution has ended."""
        await self._offers.withdraw({mac_text(one.mac): offer_id(one.job, one.attempt) for one in ends})


def offer_id(job: int, attempt: int) -> str:
    """Return the id of an attempt's offer."""
    return f"{job}-{attempt}"


def offer_of(event: StoredEvent, data: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return job and attempt of the offer that an event is about."""
    job, _, attempt = str(data.get("offer", "")).partition("-")
    return (int(job), int(attempt)) if job.isdigit() and attempt.isdigit() else None


def verify_until() -> int:
    """Return until when an offer counts that a device takes at once."""
    return milliseconds() + 2 * VERIFY_MS
