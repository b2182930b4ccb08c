"""The settings of addresses and ports."""

import re
from pathlib import Path

from pydantic import BaseModel, field_validator

from fleet.ground.settings.address_types import BrokerUrl
from fleet.ground.settings.fields import ALL_ROLES, ANY_ADDRESS, setting

_LISTENING = "address of this machine"


class AddressGroup(BaseModel):
    """Where fleet connects, where it listens, and which addresses devices get."""

    mqtt_url: BrokerUrl | None = setting(
        None,
        "Broker for worker, edge and gateway; for a front the broker behind it. It holds no user name: fleet logs in "
        "with passwords that derive from its keys.",
        ("worker", "edge", "gateway", "front"),
        syntax="mqtt(s)://host[:port]",
        unset="none, and only gateway and api start; `fleet up` starts a broker of its own",
        equal=True,
    )
    redis_url: str | None = setting(
        None,
        "Redis 7 or Valkey 8, or later. Sentinel: redis+sentinel://host,host2/SERVICE; Cluster: "
        "redis+cluster://host,host2; with TLS: rediss://, rediss+sentinel://, rediss+cluster://; socket: unix:///path. "
        "Passwords are percent-encoded. Optional for a front: with it, the front refuses revoked devices.",
        ALL_ROLES,
        syntax="redis://[user:password@]host[:port][/database]",
        unset="`fleet up` and `fleet gateway` start an embedded one; worker, edge and api do not start",
        equal=True,
        masked="part",
    )
    public_host: str | None = setting(
        None,
        "Host by which devices connect to this server. Set it in a container, behind NAT and behind a proxy.",
        ("worker", "api"),
        syntax="name or IPv4 address",
        unset="the host to which a device sent its bootstrap request",
        equal=True,
    )
    mqtt_host: str = setting(
        ANY_ADDRESS,
        "Address on which the front listens, also in `fleet up`, whose gateway connects to it.",
        ("gateway", "front"),
        syntax=_LISTENING,
    )
    mqtt_port: int = setting(
        1883,
        "MQTT port of the front. Devices get it at bootstrap unless FLEET_MQTT_PUBLIC or FLEET_TLS_CERT is set. Not "
        "8883: firmware uses TLS on that port.",
        ("api", "gateway", "front"),
        syntax="port",
        ge=0,
        le=65535,
    )
    mqtt_public: str | None = setting(
        None,
        "Address of the broker for devices. With port 8883 they use TLS, with any other port they do not.",
        ("api",),
        syntax="host:port",
        unset="the public host with FLEET_MQTT_PORT, or with 8883 if FLEET_TLS_CERT is set",
    )
    udp_host: str = setting(ANY_ADDRESS, "Address on which an edge listens for audio.", ("edge",), syntax=_LISTENING)
    udp_native: bool = setting(
        True,
        "Whether an edge uses the native part of its audio socket, if the distribution `fleet-voice-native` is "
        "installed. It takes a third of the CPU time off a packet; the log names the form at the start.",
        ("edge",),
    )
    udp_port: int = setting(8884, "UDP port of the audio.", ("edge",), syntax="port", ge=0, le=65535)
    udp_public: str | None = setting(
        None,
        "Address of this edge for devices. Each edge has its own; no load balancer may distribute its packets.",
        ("edge",),
        syntax="host:port",
        unset="the node's address (FLEET_NODE_NAME), else the one that FLEET_STUN_SERVERS report, else the edge does "
        "not start; with `fleet up` the public host",
    )
    node_name: str = setting(
        "",
        "Kubernetes node whose public address the edge uses if FLEET_UDP_PUBLIC is not set.",
        ("edge",),
        unset="the edge does not query Kubernetes",
        roles_only=True,
    )
    node_label: str = setting(
        "fleet/public-host", "Label of that node that overrides its external address.", ("edge",), roles_only=True
    )
    stun_servers: str = setting(
        "",
        "STUN servers that an edge queries for its address if no other setting gives it.",
        ("edge",),
        syntax="host[:port],…",
        unset="the edge queries none",
        roles_only=True,
    )
    http_host: str = setting(ANY_ADDRESS, "Address on which the api listens.", ("api",), syntax=_LISTENING)
    http_port: int = setting(
        8000,
        "HTTP port of the api: bootstrap, photos, operators, health. A worker sends it to cameras if "
        "FLEET_HTTP_PUBLIC is not set.",
        ("worker", "api"),
        syntax="port",
        ge=0,
        le=65535,
    )
    http_public: str | None = setting(
        None,
        "Address of the api for devices, for firmware and photos. Set it if a proxy or TLS is in front of the api, "
        "and if worker and api are separate processes.",
        ("worker", "api"),
        syntax="http(s)://host[:port]",
        unset="the address to which a device sent its bootstrap request; for cameras the public host with "
        "FLEET_HTTP_PORT, or with FLEET_HTTPS_PORT if FLEET_TLS_CERT is set",
        equal=True,
    )
    data_dir: Path = setting(
        Path.home() / ".local" / "share" / "fleet",
        "Folder for the keys and the Redis of `fleet up`, for the sessions of a gateway without FLEET_REDIS_URL, and "
        "for the operators' tokens of the api. Commands use it to find the `fleet up` of this machine.",
        ("api", "gateway"),
        syntax="folder",
        masked="file",
    )

    @field_validator("http_public")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port] or https://host[:port]")
        return value.rstrip("/") if value else value
