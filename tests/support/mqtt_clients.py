"""The raw MQTT clients of one test: let in with test keys, and cut when the test ends."""

from types import TracebackType

from tests.support.mosquitto_server import MosquittoServer
from tests.support.mqtt_raw import RawClient, Will


class Clients:
    """Opens clients to one broker with the plugin and discards them all in the end."""

    def __init__(self, broker: MosquittoServer) -> None:
        self.broker = broker
        self.keys = broker.keys
        self._open: list[RawClient] = []

    async def __aenter__(self) -> "Clients":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._open:
            await client.discard()

    async def stranger(self, level: int = 4, *, acknowledge: bool = True) -> RawClient:
        """Return a client that has not sent CONNECT yet."""
        client = await RawClient.open(self.broker.port, level, acknowledge=acknowledge)
        self._open.append(client)
        return client

    async def device(self, mac: str, level: int = 4, *, clean: bool = True, will: Will | None = None) -> RawClient:
        """Return a device that was let in."""
        client = await self.stranger(level)
        assert await client.connect(self.keys.issue("device", mac), clean=clean, will=will) == 0
        return client

    async def service(
        self, name: str = "fleet-test", level: int = 4, *, clean: bool = True, will: Will | None = None
    ) -> RawClient:
        """Return a service that was let in."""
        client = await self.stranger(level)
        assert await client.connect(self.keys.issue("service", name), clean=clean, will=will) == 0
        return client
