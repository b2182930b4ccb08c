"""A `fleet up` to run the checks against, set up as docs/conformance.md says for any server."""

import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fleet.adapters.files import endpoints
from fleet.adapters.redis.access.activations import Activations
from fleet.adapters.redis.access.admissions import Admissions
from fleet.adapters.redis.client.store import Store
from fleet.client import jobs
from fleet.ground.errors import Unavailable
from fleet.ground.settings import Settings
from fleet.wire.control.jobs import JobRequest
from fleet.workbench.conformance.context import Setup
from fleet.workbench.conformance.own_broker import OwnBroker, own_broker
from fleet.workbench.conformance.provision import Binding, Images
from fleet.workbench.conformance.steering.server import Steering
from fleet.workbench.local_servers.control import local_control, upload_image
from fleet.workbench.local_servers.mosquitto import until_accepting
from fleet.workbench.local_servers.ports import LOOPBACK, Ports, choose
from fleet.workbench.local_servers.process import run_program
from fleet.workbench.local_servers.server import Value, fleet_command, run_server, settings_for, write_settings

IDLE_SECONDS = 20.0
REFUSED = "02:00:00:00:00:0f"
IMAGES = Images(offered="conformance-board/9.1.0", forced="conformance-forced/3.0.0")
SERIAL, KEY = "SN-conformance", bytes(range(32))


def steered(url: str) -> dict[str, Value]:
    """Return the settings that lead all three models to the scripted ones at a base URL."""
    settings: dict[str, Value] = {}
    for model in ("LLM", "ASR", "TTS"):
        settings |= {f"{model}_BASE_URL": url, f"{model}_MODEL": "scripted", f"{model}_API_KEY": "none"}
    return {name.lower(): value for name, value in settings.items()}


@asynccontextmanager
async def own_server(steering: Steering, broker: OwnBroker = OwnBroker.EMBEDDED) -> AsyncIterator[Setup]:
    """Run a server on free ports of the loopback address beside the block, and an api for bound devices only.

    Raises:
        Unavailable: It ended, or was not up in time.
    """
    ports = Ports(mqtt=choose(), udp=choose(kind=socket.SOCK_DGRAM), http=choose())
    with tempfile.TemporaryDirectory(prefix="fleet-conformance-") as folder:
        path = Path(folder)
        settings = {
            **settings_for(ports, path / "data"),
            **steered(f"http://{LOOPBACK}:{steering.port}/v1"),
            # A port of its own: a `fleet up` whose default port is taken runs without control.
            "control_port": choose(),
            "metrics_port": 0,
            "idle_seconds": IDLE_SECONDS,
            "refused_devices": REFUSED,
        }
        async with AsyncExitStack() as stack:
            enter = stack.enter_async_context
            settings |= await enter(own_broker(broker, ports.mqtt, path / "broker", settings))
            server = await enter(run_server(settings, path, path / "server.log", lambda _: None))
            await _offer_firmware(path / "data")
            binding = await enter(_binding_api(settings, path))
            yield Setup(server.ota_url, steering, IDLE_SECONDS, REFUSED, binding=binding, images=IMAGES)


async def _offer_firmware(data: Path) -> None:
    """Offer the images of `IMAGES` to every device of their boards, at its next start."""
    async with local_control(data) as control:
        for told, forced in ((IMAGES.offered, False), (IMAGES.forced, True)):
            board, _, version = told.partition("/")
            image = await upload_image(control, board, version)
            asked = {
                "name": f"firmware of {board}",
                "kind": "firmware",
                "firmware": {"image": image, "how": "next_boot", "force": forced},
                "query": f"board={board}",
                "continuous": True,
                "policy": {"rate": 1_000, "window": 10_000, "halt_share": 1.0},
            }
            await control.send(jobs.create(JobRequest.model_validate(asked)))


@asynccontextmanager
async def _binding_api(settings: Mapping[str, Value], folder: Path) -> AsyncIterator[Binding]:
    """Run an api beside the block that shares the server's Redis and keys, and serves bound devices only."""
    data, port = Path(str(settings["data_dir"])), choose()
    found = endpoints.find(data)
    if found is None:
        raise Unavailable(f"the server did not say in {data} where its Redis is")
    serials, config = folder / "serials", folder / "api.toml"
    serials.write_text(f"{SERIAL} {KEY.hex()}\n")
    own: dict[str, Value] = {
        "http_port": port,
        "redis_url": found.redis_url,
        "keys_file": settings.get("keys_file", str(data / "keys")),
        "activation": "code",
        "serials_file": str(serials),
    }
    write_settings({**settings, **own}, config)

    async with run_program("the api", fleet_command(config, "api"), folder / "api.log"):
        await until_accepting("the api", port)
        store = await Store.open(found.redis_url, Settings.model_fields["shards"].default)

        async def bind(code: str) -> None:
            """Do what `fleet devices bind` does, without its three seconds of loading."""
            device = await Activations(store).claim(code)
            if device is None:
                raise Unavailable(f"no device shows the code {code}")
            await Admissions(store).bind(*device)

        try:
            yield Binding(f"http://{LOOPBACK}:{port}/xiaozhi/ota/", bind, SERIAL, KEY)
        finally:
            await store.close()
