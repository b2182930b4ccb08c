"""Ask bootstrap as a device does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import httpx2
from pydantic import ValidationError

from fleet.adapters.http_client import BoundedClient
from fleet.ground.errors import Unavailable
from fleet.ground.settings.tls import FIRMWARE_PORT
from fleet.wire.bootstrap import BootstrapAnswer, MqttSection

SECONDS = 4.0
BOARD = "fleet-doctor"
PATH = "/xiaozhi/ota/"

_BODY = b'{"application":{"version":"0.0.0"},"board":{"type":"fleet-doctor","name":"fleet-doctor"}}'


@dataclass(frozen=True, slots=True)
class BootstrapReply:
    """The answer of bootstrap; `mqtt` is None if it has no credentials.

    `ahead` is how far the api's clock is ahead of this machine's, plus or minus `within`; None if unknown. `offset` is
    the time zone that the device gets, in minutes east of UTC; None if unknown.
    """

    mqtt: MqttSection | None = None
    status: int = 0
    ahead: timedelta | None = None
    within: timedelta = timedelta()
    offset: int | None = None

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Host and port of the broker, read as firmware reads them."""
        if self.mqtt is None:
            return None
        host, _, port = self.mqtt.endpoint.partition(":")
        return host, int(port) if port.isdigit() else FIRMWARE_PORT


def headers(mac: str, client: str) -> Mapping[str, str]:
    return {"Device-Id": mac, "Client-Id": client, "User-Agent": f"{BOARD}/0.0.0", "Activation-Version": "1"}


async def ask_bootstrap(
    http: BoundedClient, url: str, mac: str, client: str, now: Callable[[], datetime]
) -> BootstrapReply:
    """Send one bootstrap request.

    Args:
        http: The HTTP client.
        url: Of the api, without a path.
        mac: Of the device.
        client: Its Client-Id.
        now: This machine's clock.

    Raises:
        Unavailable: The api does not answer, or the answer is not a bootstrap answer.
    """
    begun = now()
    try:
        answer = await http.post(url + PATH, content=_BODY, headers=dict(headers(mac, client)))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Unavailable(str(error) or type(error).__name__) from error
    took = now() - begun
    ahead, within = _ahead(answer, begun + took / 2, took / 2)
    if answer.status_code != 200:
        return BootstrapReply(None, answer.status_code, ahead, within)
    try:
        body = BootstrapAnswer.model_validate_json(answer.content)
    except ValidationError as error:
        raise Unavailable(f"{url}{PATH} answers, but not as fleet's bootstrap does") from error
    exact = datetime.fromtimestamp(body.server_time.timestamp / 1000, UTC)
    return BootstrapReply(body.mqtt, 200, exact - (begun + took / 2), took / 2, body.server_time.timezone_offset)


def _ahead(answer: httpx2.Response, middle: datetime, within: timedelta) -> tuple[timedelta | None, timedelta]:
    """Return `ahead` and `within` from the header Date, which has whole seconds."""
    try:
        date = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return None, within
    if date.tzinfo is None:
        return None, within
    return date + timedelta(seconds=0.5) - middle, within + timedelta(seconds=0.5)
