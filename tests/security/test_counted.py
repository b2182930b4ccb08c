"""Each refusal is counted: what operators see at the roles' ports for metrics while strangers try things."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import httpx2
import pytest
import pytest_asyncio

from fleet.adapters.redis.access.admissions import Admissions, BootstrapAsker, most_young
from fleet.ground.metrics.catalogue import all_metrics
from fleet.wire.identity import Credentials
from fleet.wire.topics import down_topic, up_topic
from tests.security.test_catalogue import CATALOGUE
from tests.support.api_server import BODY, headers
from tests.support.mqtt_clients import Clients
from tests.support.mqtt_raw import RawClient
from tests.support.ports import LOOPBACK, free_port
from tests.support.redis_store import opened
from tests.support.role_site import SHARDS, RoleSite, role_site
from tests.support.scraped import ready, scrape
from tests.support.until import until

LIMIT = 240.0
DEVICE, OTHER, LISTED = "0a:00:00:00:03:01", "0a:00:00:00:03:02", "0a:00:00:00:03:03"

WORKER, FRONT, EDGE = "fleet_worker_refusals", "fleet_front_events", "fleet_edge_drops"
API, ROUTES = "fleet_api_refusals", "fleet_api_requests_refused"
MOSQUITTO = "Mosquitto ends the connection itself, before any plugin is asked; its log says so"

COUNTED: dict[str, list[tuple[str, str]] | str] = {
    "wrong password": [(WORKER, "broker_connections"), (FRONT, "not_authorised"), (API, "mqtt_login_refused")],
    "foreign client id": [(WORKER, "broker_connections"), (FRONT, "client_id"), (API, "mqtt_login_refused")],
    "publish to other devices, $SYS and wildcards": [(WORKER, "broker_messages"), (FRONT, "foreign_topic")],
    "subscribe to other devices, #, $share and $SYS": [(WORKER, "broker_subscriptions"), (FRONT, "foreign_filter")],
    "retained message": MOSQUITTO,
    "oversized message": [(FRONT, "oversize")],
    "revoked device": [(WORKER, "broker_connections"), (FRONT, "revoked"), (API, "bootstrap_revoked")],
    "password that was replaced, or issued without proof": [
        (WORKER, "broker_connections"),
        (FRONT, "outdated"),
        (API, "mqtt_login_refused"),
    ],
    "made-up user names": [(WORKER, "broker_connections"), (FRONT, "not_authorised"), (API, "mqtt_login_refused")],
    "replayed UDP": [(EDGE, "replay"), (EDGE, "flags")],
    "forged UDP": [(EDGE, "not_audio"), (EDGE, "malformed"), (EDGE, "rate")],
    "forged UDP from another address for ten minutes": [(EDGE, "not_audio"), (EDGE, "unproved"), (EDGE, "jump")],
    "forged UDP in the device's name for ten minutes": [(EDGE, "not_audio"), (EDGE, "unproved"), (EDGE, "replay")],
    "relayed UDP": [(EDGE, "replay"), (EDGE, "unproved")],
    "UDP from source port 0": [(EDGE, "port_zero")],
    "zero-length and 64 KB datagrams": [(EDGE, "too_short"), (EDGE, "malformed")],
    "pauses without end": [
        ("fleet_early_work_skipped", "too_often"),
        ("fleet_early_work_skipped", "recogniser_busy"),
    ],
    "speech without end": [("fleet_utterances", "too_often")],
    "echo cancellers that nobody gives back": "nobody is refused: the place is taken from who does not play",
    "ssrc guessing": [(EDGE, "unknown_ssrc")],
    "sequence 0xFFFFFFFF": [(EDGE, "jump")],
    "one unauthenticated packet from elsewhere": [(EDGE, "unproved")],
    "junk before login": [(FRONT, "malformed"), (API, "malformed_request")],
    "silence before login": [(FRONT, "silent"), (FRONT, "crowded_out"), (API, "no_request")],
    "takeover storm": [(FRONT, "taken_over")],
    "hello storm of one device": [(WORKER, "hello_too_often")],
    "hello storm of a thousand devices": "each of them may say hello; nobody is refused",
    "message flood of one device": [(WORKER, "broker_floods"), (FRONT, "flood")],
    "tool calls without end": [(WORKER, "call_too_often")],
    "bootstrap flood": [(API, "device_bootstrap"), (API, "address_bootstrap")],
    "stolen camera tokens": [(API, "photo_token"), (API, "device_photo"), (API, "address_photo")],
    "activation brute force": [
        (API, "activation_wrong_proof"),
        (API, "device_activation"),
        (API, "address_invitation"),
        (API, "bootstrap_not_bound"),
        (API, "bootstrap_not_on_the_list"),
    ],
    "borrowed MACs": [(API, "bootstrap_another_owner"), (API, "claims_crowded_out"), (API, "no_client_id")],
    "invented MACs": [
        (API, "bootstrap_no_place"),
        (API, "bootstrap_no_place_for_its_address"),
        (API, "devices_crowded_out"),
        ("fleet_bound_used", "new_devices"),
    ],
    "markup and control characters in what operators read": "nothing is refused",
    "header spoofing": [(API, "address_bootstrap"), (API, "no_mac")],
    "accounts of operators: guessed passwords, foreign pages, stolen and chosen cookies": [
        ("fleet_sign_ins", "wrong"),
        ("fleet_sign_ins", "limited"),
        ("fleet_sign_ins", "busy"),
    ],
    "path traversal in firmware names": [(API, "firmware_no_such_image"), (ROUTES, "elsewhere")],
    "tool lists without an end": [
        (WORKER, "tools_too_many_lists"),
        (WORKER, "tools_page_too_long"),
        (WORKER, "tools_too_long"),
        ("fleet_bound_used", "tool_lists_bytes"),
    ],
    "devices that the embedded broker would remember": [
        (FRONT, "too_many_devices"),
        ("fleet_bound_used", "broker_devices"),
    ],
    "answers of servers without an end": [("fleet_provider_errors", "bad_answer")],
    "file descriptors used up": "process_open_fds and process_max_fds of the Prometheus library",
    "lines that fill the log": "fleet_log_lines_left_out_total, which has no labels",
    "decompression and JSON bombs": [("fleet_malformed_frames", "device")],
    "slow-loris on HTTP": [(API, "no_request"), (API, "answer_not_read"), (API, "too_many_connections")],
}
"""Metric and a value of its first label for each attack, or why there is none."""


def test_each_attack_has_its_counter_and_each_counter_exists() -> None:
    of_others = {attack for attack, places in CATALOGUE.items() if all("gateway" in place for place in places)}
    assert set(CATALOGUE) - of_others <= set(COUNTED)
    known = {(metric.name, value) for metric in all_metrics() for values in metric.labels.values() for value in values}
    named = {one for found in COUNTED.values() if isinstance(found, list) for one in found}
    assert named <= known


@dataclass
class Attacked:
    """A site of processes, and what each says that it refused."""

    site: RoleSite
    ports: dict[str, int]
    api: httpx2.AsyncClient
    front: int
    udp: int

    def count(self, role: str, metric: str, **labels: str) -> float:
        return scrape(self.ports[role]).value(f"{metric}_total", **labels)

    async def until_counted(self, attack: Callable[[], Awaitable[None]], role: str, metric: str, **labels: str) -> None:
        """Attack until it is counted: a worker hears the plugin's figures every few seconds, and then what grew."""
        async with asyncio.timeout(LIMIT):
            while not await asyncio.to_thread(self.count, role, metric, **labels):
                await attack()
                await asyncio.sleep(0.2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attacked(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attacked]:
    """One site for all tests: each counts what no other does."""
    with role_site(tmp_path_factory.mktemp("counted")) as site:
        ports = {role: free_port() for role in ("worker", "edge", "api", "front")}
        told = {role: {"FLEET_METRICS_PORT": str(port), "FLEET_METRICS_HOST": LOOPBACK} for role, port in ports.items()}
        front = free_port()
        own = {"FLEET_HTTP_HOST": LOOPBACK, "FLEET_HTTP_PORT": str(site.http_port), "FLEET_ACTIVATION": "closed"}
        site.start("api", **own, **told["api"])
        edge = site.edge(**told["edge"])
        site.worker(**told["worker"])
        site.start("front", FLEET_MQTT_HOST=LOOPBACK, FLEET_MQTT_PORT=str(front), **told["front"])
        await asyncio.to_thread(until, lambda: all(ready(port) for port in ports.values()), LIMIT)
        async with httpx2.AsyncClient(
            base_url=f"http://{LOOPBACK}:{site.http_port}", trust_env=False, timeout=LIMIT
        ) as client:
            yield Attacked(site, ports, client, front, edge.udp_port)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_plugin_refuses_is_counted_by_one_worker(attacked: Attacked) -> None:
    broker = attacked.site.broker

    async def log_in_wrongly() -> None:
        stranger = await RawClient.open(broker.port)
        right = broker.keys.issue("device", OTHER)
        assert await stranger.connect(Credentials(DEVICE, right.username, right.password)) == 5
        await stranger.discard()

    async with Clients(broker) as clients:
        device = await clients.device(DEVICE)

        async def publish_elsewhere() -> None:
            await device.publish(down_topic(OTHER), b"reboot")

        async def listen_elsewhere() -> None:
            assert await device.subscribe("#") == 0x80

        async def flood() -> None:
            for _ in range(600):
                await device.publish(up_topic(DEVICE), b"x")

        attacks = {
            "connections": log_in_wrongly,
            "messages": publish_elsewhere,
            "subscriptions": listen_elsewhere,
            "floods": flood,
        }
        # All at once: the plugin tells its figures every five seconds.
        async with asyncio.TaskGroup() as group:
            for kind, attack in attacks.items():
                group.create_task(attacked.until_counted(attack, "worker", WORKER, reason=f"broker_{kind}"))


@pytest.mark.usefixtures("patient")
@pytest.mark.asyncio(loop_scope="module")
async def test_how_many_macs_never_connected_is_shown(attacked: Attacked) -> None:
    names = (f"0e:00:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(4096))
    async with opened(attacked.site.redis.url) as store:
        macs = [name for name in names if store.keys.shard(name) == store.keys.shard(DEVICE)][:7]
        for number, name in enumerate(macs):
            await Admissions(store).decide(
                "first", BootstrapAsker(name, "a-client", f"192.0.2.{number}"), {"kid": "k1"}
            )

    def shown() -> bool:
        return scrape(attacked.ports["worker"]).value("fleet_bound_used", bound="new_devices") == 7

    await asyncio.to_thread(until, shown, LIMIT)
    limit = scrape(attacked.ports["worker"]).value("fleet_bound_limit", bound="new_devices")
    assert limit == most_young(SHARDS), "of the shard with the most"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_api_refuses_is_counted_by_its_reason(attacked: Attacked) -> None:
    api = attacked.api
    listed, proof = headers(Device_Id=LISTED), {"serial_number": "S", "challenge": "0" * 64, "hmac": "0" * 64}
    token = {"Device-Id": DEVICE, "Authorization": "Bearer 9999999999.site.x"}
    asked = [
        ("no_mac", 400, api.post("/xiaozhi/ota/", content=BODY)),
        ("bootstrap_not_on_the_list", 403, api.post("/xiaozhi/ota/", headers=listed, content=BODY)),
        ("activation_wrong_proof", 403, api.post("/xiaozhi/ota/activate", headers=listed, json=proof)),
        ("photo_token", 401, api.post("/vision/explain", headers=token, content=b"x")),
        ("firmware_no_such_image", 404, api.get("/xiaozhi/firmware/..%2epasswd.bin")),
    ]
    for reason, status, question in asked:
        assert (await question).status_code == status, reason
        assert attacked.count("api", API, reason=reason) == 1, reason
    assert (await api.get("/xiaozhi/firmware/..%2f..%2fetc/passwd.bin")).status_code == 404
    assert attacked.count("api", ROUTES, route="elsewhere", status="404") == 1
    reader, writer = await asyncio.open_connection(LOOPBACK, attacked.site.http_port)
    writer.write(b"\x16\x03\x01 no request\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 400 Bad Request\r\n"
    writer.close()
    assert attacked.count("api", API, reason="malformed_request") == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_edge_and_the_front_refuse_is_counted(attacked: Attacked) -> None:
    async def send_junk() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
            for datagram in (b"", bytes.fromhex("01000010") + b"\x77" * 28, b"\xff" * 40):
                forger.sendto(datagram, (LOOPBACK, attacked.udp))

    async def log_in_wrongly() -> None:
        stranger = await RawClient.open(attacked.front)
        assert await stranger.connect(Credentials(DEVICE, "device.site", "guess")) == 5
        await stranger.discard()

    for reason in ("too_short", "unknown_ssrc", "malformed"):
        await attacked.until_counted(send_junk, "edge", EDGE, reason=reason)
    await attacked.until_counted(log_in_wrongly, "front", FRONT, reason="not_authorised")
