"""A WebSocket client as a device: it has its own MQTT connection with its own credentials.

The gateway checks the credentials, because a broker behind a front may accept any; the broker may check them again. The
client is then a device like all others: it has presence, revocation, its topics, its worker, calls at most once, and
texts that operators enter. Frames pass unchanged in both directions, except that the password is only sent in CONNECT.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from uuid import uuid4

from fleet.adapters.net.mqtt.session import MqttSession, Reading
from fleet.adapters.net.mqtt.url import MqttAddress
from fleet.adapters.redis.client.store import Store
from fleet.adapters.redis.shards.inbox import Inboxes
from fleet.ground.errors import FleetError, Overloaded, Unavailable
from fleet.ground.tasks import running, single_exception
from fleet.roles.gateway.client import Client, ClientGone
from fleet.roles.gateway.registrar.registrar import RegistrarDevice, RegistrarRefused
from fleet.wire.edge_messages import UtteranceEvent
from fleet.wire.identity import CredentialKeys, Credentials, parse_username
from fleet.wire.json_text import dump, parse
from fleet.wire.messages import RegisterToolsEvent
from fleet.wire.topics import down_topic, up_topic

log = logging.getLogger(__name__)

CONNECT_SECONDS = 10.0
KEEPALIVE = 30

_NOT_PROVED = "the device is not admitted with these credentials"

OpenSession = Callable[[Reading], MqttSession]
Post = Callable[[UtteranceEvent], Awaitable[None]]


class DeviceConnection:
    """One client as one device.

    Args:
        client: The client.
        mac: The device.
        open_session: Makes its MQTT session with the given `Reading`.
        post: Sends a text to the device's shard.
    """

    def __init__(self, client: Client, mac: str, open_session: OpenSession, post: Post) -> None:
        self._client = client
        self._mac = mac
        self._post = post
        # One at a time, so that the client gets its frames in order.
        self._session = open_session(Reading([down_topic(mac)], self._receive, bound=1))
        self._settled = asyncio.Event()
        self._refusal = ""

    async def run(self) -> None:
        """Run the MQTT session until it ends; then close the client's connection, so that the client reconnects."""
        try:
            await self._session.run(self._settled.set)
        except* FleetError as ended:
            self._refusal = str(single_exception(ended))
        was_connected = self._settled.is_set()
        self._settled.set()
        if was_connected:
            log.info("device connection ended", extra={"device": self._mac, "reason": self._refusal})
            self._client.cut()

    async def until_connected(self) -> None:
        """Wait until the broker has accepted the device.

        Raises:
            RegistrarRefused: The broker refused it, or did not answer.
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await self._settled.wait()
        except TimeoutError:
            raise RegistrarRefused("the broker does not answer") from None
        if self._refusal:
            # The reason is only logged, because it may contain the broker's address.
            log.info("broker refused a client", extra={"device": self._mac, "reason": self._refusal})
            raise RegistrarRefused(_NOT_PROVED)

    async def receive(self, frame: bytes) -> None:
        """Publish a frame as the device.

        Raises:
            ClientGone: The MQTT session has ended.
        """
        try:
            self._session.publish(up_topic(self._mac), without_login(frame))
        except Unavailable as error:
            raise ClientGone(str(error)) from error
        except Overloaded as error:
            log.warning("frame dropped", extra={"device": self._mac, "reason": str(error)})

    async def enter(self, text: str) -> None:
        """Begin a turn with a text; it ends a turn that is still running.

        Raises:
            ClientGone: Redis does not answer.
        """
        try:
            await self._post(UtteranceEvent(device=self._mac, session="", turn=uuid4().hex, text=text, typed=True))
        except Unavailable as error:
            raise ClientGone(str(error)) from error

    async def _receive(self, topic: str, payload: bytes) -> None:
        if topic == down_topic(self._mac):
            await self._client.send_frame(payload.decode("utf-8", "replace"))


class DeviceConnections:
    """Connects clients as devices, and closes their connections when their credentials become invalid.

    The broker behind a front does not know revoked devices, and these connections do not pass the front.

    Args:
        broker: The broker of the devices.
        keys: Check whether credentials are genuine and valid.
        store: Holds the inboxes of the devices' shards.
    """

    def __init__(self, broker: MqttAddress, keys: CredentialKeys, store: Store) -> None:
        self.keys = keys
        self._broker = broker
        self._store = store
        self._inboxes = Inboxes(store)
        self._open: dict[Client, Credentials] = {}

    def expel(self, macs: frozenset[str] | None) -> None:
        """Close the connections of clients whose credentials `keys` does not admit any more.

        Args:
            macs: The devices to check; None for all.
        """
        for client, credentials in self._open.items():
            mac = credentials.client_id
            concerned = macs is None or mac in macs
            if concerned and not self.keys.admit(mac, parse_username(credentials.username)):
                log.info("closed a device client whose credentials are no longer valid", extra={"device": mac})
                client.cut()

    def session(self, credentials: Credentials, reading: Reading) -> MqttSession:
        """Return an MQTT session of a device that is not connected yet."""
        return MqttSession(self._broker, credentials, keepalive=KEEPALIVE, reading=reading)

    @contextmanager
    def followed(self, client: Client, credentials: Credentials) -> Iterator[None]:
        """Close the client's connection when its credentials become invalid during the block."""
        self._open[client] = credentials
        try:
            yield
        finally:
            del self._open[client]

    @asynccontextmanager
    async def connect(self, client: Client, asked: RegisterToolsEvent) -> AsyncIterator[RegistrarDevice]:
        """Connect a client as the device whose credentials it sent; the connection lasts as long as the block.

        Raises:
            RegistrarRefused: The credentials are invalid, or the broker refuses them.
        """
        if asked.mac is None or asked.login is None:
            raise RegistrarRefused("params.auth needs params.mac_addr")
        if self.keys.verify(asked.mac, *asked.login) != "device":
            raise RegistrarRefused(_NOT_PROVED)
        credentials = Credentials(asked.mac, *asked.login)
        shard = self._store.keys.shard(asked.mac)
        connection = DeviceConnection(
            client,
            asked.mac,
            lambda reading: self.session(credentials, reading),
            lambda message: self._inboxes.to_shard(shard, message),
        )
        async with running(f"device connection {asked.mac}", connection.run):
            with self.followed(client, credentials):
                await connection.until_connected()
                log.info("client logged in as a device", extra={"device": asked.mac})
                yield connection


def without_login(frame: bytes) -> bytes:
    """Return a frame without the password that it may contain, because no receiver needs it."""
    if b"auth" not in frame and b"\\u" not in frame:
        return frame
    try:
        document = parse(frame)
    except (ValueError, RecursionError):
        return frame
    params = document.get("params") if isinstance(document, dict) else None
    if isinstance(document, dict) and isinstance(params, dict) and "auth" in params:
        return dump({**document, "params": {name: value for name, value in params.items() if name != "auth"}})
    return frame
