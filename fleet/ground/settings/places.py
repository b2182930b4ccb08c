"""The settings of addresses and ports."""

import re
from pathlib import Path

from pydantic import BaseModel, field_validator

from fleet.ground.settings.fields import EVERY, EVERYWHERE, setting

_LISTENING = "address of this machine"


class Places(BaseModel):
    """Where things are: what fleet connects to, where it listens, and what devices are told."""

    mqtt_url: str | None = setting(
        None,
        "Broker for worker, edge and gateway; for a front the broker behind it. fleet logs in with passwords that it "
        "derives from its keys, so there is no name in it.",
        ("worker", "edge", "gateway", "front"),
        form="mqtt(s)://host[:port]",
        without="none, and only gateway and api start; `fleet up` starts a broker of its own",
        same=True,
    )
    redis_url: str | None = setting(
        None,
        "Redis 7 or Valkey 8, or later. Sentinels that name a primary: redis+sentinel://host,host2/SERVICE; a Cluster: "
        "redis+cluster://host,host2; with TLS rediss:// and so on; a socket: unix:///path. Passwords are "
        "percent-encoded. For a front it is optional: with it, revoked devices are refused.",
        EVERY,
        form="redis://[user:password@]host[:port][/database]",
        without="`fleet up` and `fleet gateway` start one of their own; the other roles but the front do not start",
        same=True,
        hidden="part",
    )
    public_host: str | None = setting(
        None,
        "Where devices reach this server. Set it in a container, behind NAT and behind a proxy.",
        ("worker", "api"),
        form="name or IPv4 address",
        without="the host by which a device reached bootstrap",
        same=True,
    )
    mqtt_host: str = setting(
        EVERYWHERE,
        "Address on which the front, or that of `fleet up`, listens. The gateway of `fleet up` connects to it.",
        ("gateway", "front"),
        form=_LISTENING,
    )
    mqtt_port: int = setting(
        1883,
        "MQTT port of the front, and the one that devices are told without FLEET_MQTT_PUBLIC and FLEET_TLS_CERT. Not "
        "8883: firmware uses TLS there.",
        ("api", "gateway", "front"),
        form="port",
        ge=0,
        le=65535,
    )
    mqtt_public: str | None = setting(
        None,
        "Broker that devices are told. With port 8883 they use TLS, with any other they do not.",
        ("api",),
        form="host:port",
        without="the public host with FLEET_MQTT_PORT, or with 8883 where there is FLEET_TLS_CERT",
    )
    udp_host: str = setting(EVERYWHERE, "Address on which an edge listens for audio.", ("edge",), form=_LISTENING)
    udp_port: int = setting(8884, "UDP port of the audio.", ("edge",), form="port", ge=0, le=65535)
    udp_public: str | None = setting(
        None,
        "Where devices reach this edge: each edge has its own, and nothing may spread packets over several.",
        ("edge",),
        form="host:port",
        without="the node's address (FLEET_NODE_NAME), else what FLEET_STUN_SERVERS see, else the edge does not start; "
        "with `fleet up` the public host",
    )
    node_name: str = setting(
        "",
        "Kubernetes node whose public address the edge takes where FLEET_UDP_PUBLIC is not set.",
        ("edge",),
        without="Kubernetes is not asked",
        alone=True,
    )
    node_label: str = setting(
        "fleet/public-host", "Label of that node that wins over its external address.", ("edge",), alone=True
    )
    stun_servers: str = setting(
        "",
        "STUN servers that an edge asks for its address where nothing else tells it.",
        ("edge",),
        form="host[:port],…",
        without="none is asked",
        alone=True,
    )
    http_host: str = setting(EVERYWHERE, "Address on which the api listens.", ("api",), form=_LISTENING)
    http_port: int = setting(
        8000,
        "HTTP port of the api: bootstrap, photos, operators, health. A worker tells cameras this port where "
        "FLEET_HTTP_PUBLIC is not set.",
        ("worker", "api"),
        form="port",
        ge=0,
        le=65535,
    )
    http_public: str | None = setting(
        None,
        "Where devices reach the api, for firmware and photos. Set it where a proxy or TLS is in front of the api, and "
        "where worker and api are processes of their own.",
        ("worker", "api"),
        form="http(s)://host[:port]",
        without="as a device reached bootstrap; for cameras the public host with FLEET_HTTP_PORT, or with "
        "FLEET_HTTPS_PORT where there is FLEET_TLS_CERT",
        same=True,
    )
    data_dir: Path = setting(
        Path.home() / ".local" / "share" / "fleet",
        "Where `fleet up` keeps its keys and its Redis, a gateway without FLEET_REDIS_URL its sessions, the api its "
        "operators' tokens. Commands find the `fleet up` of this machine by it.",
        ("api", "gateway"),
        form="folder",
        hidden="file",
    )

    @field_validator("http_public")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port] or https://host[:port]")
        return value.rstrip("/") if value else value
