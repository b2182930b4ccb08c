"""`POST /xiaozhi/ota/activate`, and the part of bootstrap that leads to it (contract 1.4)."""

import asyncio
import hmac
import logging
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from fleet.adapters.files.serials import Serials
from fleet.adapters.redis.access.activations import Activations, Pending
from fleet.adapters.redis.access.admissions import Admission, Admissions, BootstrapAsker, Decision
from fleet.adapters.redis.access.claims import Claims
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.devices.traces import RefusalReason, TraceStore
from fleet.core.admission import Policy
from fleet.ground.errors import Overloaded, Unavailable
from fleet.roles.api.body import read_body
from fleet.roles.api.refusals import RefusedRequest
from fleet.roles.api.requester import Requester, read_requester, require_client
from fleet.roles.api.settings import ApiSettings
from fleet.roles.api.throttle import Throttle
from fleet.wire.activation import LARGEST_BODY, ActivationProof, parse_proof, verify
from fleet.wire.bootstrap import ActivationSection

log = logging.getLogger(__name__)

STORE_SECONDS = 2.0
BOUND, WAITING = 200, 202
"""What firmware understands: it asks again 3 s after a 202, and 10 s after anything else but 200."""

_MESSAGES = {"en": "Enter this code at the server:\n{}", "zh": "请在服务器上输入激活码：\n{}"}
_AGAIN = {"en": "\nThen start this program again.", "zh": "\n然后请重新启动本程序。"}
"""For py-xiaozhi, which does not ask bootstrap again after its activation, and has no credentials before that."""
_PROVING = {"en": "The device is being activated.", "zh": "设备正在激活。"}

Outcome = Literal["bound", "waiting", "refused"]

_TRACE_SECONDS = 0.5
_PYTHON = "py-xiaozhi"
"""How its User-Agent goes on after the board."""


class ActivationService:
    """Decides which devices are served, and activates them.

    Args:
        settings: The policy, and the time for which an old password counts.
        store: Has admissions and codes.
        serials: The devices whose burnt-in key the operator knows.
        counts: Counts refusals, and entries that made room for others.
    """

    def __init__(self, settings: ApiSettings, store: Store, serials: Serials, counts: Counter[str]) -> None:
        self._policy: Policy = settings.activation
        self._renewal_seconds = settings.renewal_days * 86_400
        self._counts = counts
        self._claims = Claims(store)
        self._admissions = Admissions(store)
        self._activations = Activations(store)
        self._traces = TraceStore(store)
        self._serials = serials

    async def decide(self, who: Requester, address: str, dialect: str, fields: Mapping[str, str]) -> Decision:
        """Return the decision about a device; store what it says of itself if it is served.

        Raises:
            Unavailable: Redis did not answer.
        """
        provable = self._serials.find(who.serial) is not None
        asker = BootstrapAsker(who.mac, who.client, address, provable=provable, dialect=dialect)
        decision = await self._admissions.decide(self._policy, asker, fields)
        if decision.evicted:
            self._counts["devices: crowded out"] += decision.evicted
        if decision.claims:
            self._counts["bootstrap: another owner"] += 1
            if dropped := await self._claims.note(who.mac, address):
                self._counts["claims: crowded out"] += dropped
        return decision

    async def invite(self, who: Requester) -> ActivationSection:
        """Return what a device shows that has to be activated; it stays the same until an operator acts on it.

        Raises:
            Unavailable: Redis did not answer.
            Overloaded: Too many devices wait.
        """
        with_code = self._policy != "closed"
        pending = await self._activations.begin(who.mac, who.client, who.serial, with_code=with_code)
        language = "zh" if who.language.lower().startswith("zh") else "en"
        text = (_MESSAGES if pending.code else _PROVING)[language].format(pending.code)
        again = _AGAIN[language] if who.firmware.startswith(_PYTHON) else ""
        return ActivationSection(message=text + again, code=pending.code or None, challenge=pending.challenge)

    async def record_refusal(self, who: Requester, reason: RefusalReason) -> None:
        """Count a refusal, and store it for `fleet doctor --device`."""
        self._counts[f"bootstrap: {reason}"] += 1
        try:
            async with asyncio.timeout(_TRACE_SECONDS):
                await self._traces.record_refusal(who.mac, reason)
        except (Unavailable, TimeoutError):
            log.debug("refusal not stored", extra={"device": who.mac})

    async def check(self, who: Requester, proof: ActivationProof | None) -> Outcome:
        """Decide about a device that asks whether it is bound.

        Raises:
            Unavailable: Redis did not answer.
        """
        if self._policy == "open":
            return "bound"
        pending = await self._activations.read(who.mac, who.client)
        if not self._is_valid(who, pending, proof):
            return "refused"
        admission = await self._admissions.read(who.mac)
        if admission.bound and admission.client in ("", who.client):
            return "bound"
        if proof is not None and self._admits(who, admission, proof):
            until = int(datetime.now(UTC).timestamp() + self._renewal_seconds)
            await self._admissions.bind(who.mac, who.client, proof.serial_number, how="key", until=until)
            log.info("device bound by its key", extra={"device": who.mac})
            return "bound"
        return "waiting" if self._policy != "closed" else "refused"

    def _is_valid(self, who: Requester, pending: Pending | None, proof: ActivationProof | None) -> bool:
        """Whether a request has the proof that it needs; without a known key it needs none."""
        if proof is None:
            return pending is None or self._serials.find(pending.serial) is None
        if pending is None or (pending.serial and pending.serial != proof.serial_number):
            return False
        if not hmac.compare_digest(pending.challenge.encode(), proof.challenge.encode(errors="replace")):
            return False
        serial = self._serials.find(proof.serial_number)
        if serial is None:
            return True
        return verify(proof, serial.key) and serial.mac in ("", who.mac)

    def _admits(self, who: Requester, admission: Admission, proof: ActivationProof) -> bool:
        """Whether a valid proof admits a device without an operator: by the closed list, or again."""
        if self._serials.find(proof.serial_number) is None:
            return False
        if admission.bound:
            return admission.serial == proof.serial_number
        return self._policy == "closed"


class ActivationRoute:
    """Answers devices that ask every three seconds until they are bound; each answer is cheap.

    Args:
        settings: Hold the policy.
        service: Decides.
        throttle: Limits requests.
    """

    def __init__(self, settings: ApiSettings, service: ActivationService, throttle: Throttle) -> None:
        self._settings = settings
        self._service = service
        self._throttle = throttle
        self.router = APIRouter()
        self.router.add_route("/xiaozhi/ota/activate", self.answer, methods=["POST"])

    async def answer(self, request: Request) -> JSONResponse:
        """Return status 200 for a device that is bound, 202 for one that has to wait; 403 refuses a wrong proof."""
        self._throttle.admit_address("activation", request)
        who = read_requester(request)
        self._throttle.admit_device("activation", request, who.mac)
        require_client(who, self._settings)
        proof = parse_proof(await read_body(request, LARGEST_BODY))
        try:
            async with asyncio.timeout(STORE_SECONDS):
                outcome = await self._service.check(who, proof)
        except (Unavailable, Overloaded, TimeoutError) as error:
            log.warning("activation failed", extra={"device": who.mac, "reason": str(error) or "no answer in time"})
            raise RefusedRequest("store away", 503, "try again later") from error
        if outcome == "refused":
            log.warning("activation refused", extra={"device": who.mac})
            raise RefusedRequest("activation: wrong proof", 403, "the proof is wrong, or of another activation")
        return JSONResponse({"status": outcome}, BOUND if outcome == "bound" else WAITING)
