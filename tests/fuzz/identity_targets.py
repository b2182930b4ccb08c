"""Who somebody says to be: the headers and body of a bootstrap request, topics, credentials."""

import re
from random import Random

from fleet.wire import topics
from fleet.wire.bootstrap import MqttSection, endpoint_host, parse_body
from fleet.wire.identity import CredentialKeys
from tests.fuzz import damage
from tests.fuzz.target import Target, assert_sendable

_KEYS = CredentialKeys("k1:0123456789abcdef,k2:abcdef0123456789")
_GENERATIONS = ("device.k1.first.1", "device.k1.first.3", "device.k1.first.2147483647")
_MACS = ("24:0a:c4:12:34:56", "24-0A-C4-12-34-56", "240ac4123456", " aa:bb:cc:dd:ee:ff ", "aabb.ccdd.eeff")
_HOSTS = ("example.com", "192.0.2.7:8000", "[::1]:8000", "fleet.local:", "a" * 300, "x:1:2", "http://a", "host:²")
_ENDPOINT = re.compile(r"[A-Za-z0-9.-]{1,253}")


def make_bootstrap(random: Random) -> tuple[str, str, bytes]:
    """Return the headers Device-Id and Host, and a body."""
    headers = [
        damage.damage_text(random, random.choice(kind)).encode(errors="replace").decode("latin-1")
        for kind in (_MACS, _HOSTS)
    ]
    return headers[0], headers[1], damage.json_bytes(random, "bootstrap.jsonl")


def check_bootstrap(request: tuple[str, str, bytes]) -> None:
    """A body never matters; a MAC and a host are either refused or such that firmware survives them (contract 1.2)."""
    device, host, body = request
    told = parse_body(body)
    assert_sendable([told.board.type, told.board.name, told.application.version, told.language])
    mac, endpoint = topics.canonical_mac(device), endpoint_host(host)
    assert endpoint is None or _ENDPOINT.fullmatch(endpoint)
    if mac is None:
        return
    assert topics.canonical_mac(mac) == mac
    assert topics.parse(topics.up_topic(mac)) == ("up", mac)
    login = _KEYS.issue("device", mac)
    section = MqttSection(
        endpoint=f"{endpoint}:8883",
        client_id=login.client_id,
        username=login.username,
        password=login.password,
        publish_topic=topics.up_topic(mac),
        keepalive=60,
    )
    assert len(section.model_dump_json()) < 1000


def make_topic(random: Random) -> str:
    mac = random.choice((topics.canonical_mac(random.choice(_MACS)) or "", "24:0A:c4:12:34:56", "٢٤:0a:c4:12:34:56"))
    plain = random.choice((topics.up_topic, topics.presence_topic, topics.down_topic))(mac)
    changed = plain.replace("/99/", random.choice(("/99/", "/099/", "/٩٩/", "/9/", "/+/", "//", "/99/0/")))
    return damage.damage_text(random, changed) if random.randrange(2) else changed


def check_topic(topic: str) -> None:
    """A topic that is understood is exactly the one that its MAC has."""
    found = topics.parse(topic)
    if found is not None:
        kind, mac = found
        assert topic == (topics.up_topic(mac) if kind == "up" else topics.presence_topic(mac))


def make_login(random: Random) -> tuple[str, str, str]:
    login = _KEYS.issue(
        random.choice(("device", "service")), random.choice(("24:0a:c4:12:34:56", "fleet-x", "stranger"))
    )
    if random.randrange(2):
        generation = random.choice((1, 3, 2**31 - 1))
        login = _KEYS.issue("device", "24:0a:c4:12:34:56", policy="first", generation=generation)
    fields = [login.client_id, login.username, login.password]
    for _ in range(random.randrange(3)):
        at = random.randrange(3)
        fields[at] = damage.damage_text(random, fields[at])
    return fields[0], fields[1], fields[2]


def check_login(login: tuple[str, str, str]) -> None:
    """Only what was issued is accepted, and only for the kind that fits the client id."""
    client_id, username, password = login
    kind = _KEYS.verify(client_id, username, password)
    if kind is not None:
        assert username in (f"{kind}.k1", *_GENERATIONS)
        assert (topics.canonical_mac(client_id) == client_id) == (kind == "device")
        assert kind == "device" or client_id.startswith("fleet-")


TARGETS = (
    Target("bootstrap", make_bootstrap, check_bootstrap, 6),
    Target("topic", make_topic, check_topic, 4),
    Target("login", make_login, check_login, 4),
)
