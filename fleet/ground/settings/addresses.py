"""The settings of addresses and ports."""

import re
from pathlib import Path

from pydantic import field_validator

from fleet.ground.settings.address_types import BrokerUrl
from fleet.ground.settings.fields import ALL_ROLES, ANY_ADDRESS, SettingGroup, setting

_LISTENING = "address of this machine"


class AddressGroup(SettingGroup):
    """Where fleet connects, where it listens, and which addresses devices get."""

    title = "Addresses and ports"

    mqtt_url: BrokerUrl | None = setting(
        None,
        ("worker", "edge", "gateway", "front"),
        syntax="mqtt(s)://host[:port]",
        unset="none, and only gateway and api start; `fleet up` starts a broker of its own",
        equal=True,
    )
    """Broker for worker, edge and gateway; for a front the broker behind it. It holds no user name: fleet logs in with
    passwords that derive from its keys."""
    redis_url: str | None = setting(
        None,
        ALL_ROLES,
        syntax="redis://[user:password@]host[:port][/database]",
        unset="`fleet up` and `fleet gateway` start an embedded one; worker, edge and api do not start",
        equal=True,
        masked="part",
    )
    """Redis 7 or Valkey 8, or later. Sentinel: redis+sentinel://host,host2/SERVICE; Cluster:
    redis+cluster://host,host2; with TLS: rediss://, rediss+sentinel://, rediss+cluster://; socket: unix:///path.
    Passwords are percent-encoded. Optional for a front: with it, the front refuses revoked devices."""
    public_host: str | None = setting(
        None,
        ("worker", "api", "control"),
        syntax="name or IPv4 address",
        unset="the host to which a device sent its bootstrap request",
        equal=True,
    )
    """Host by which devices connect to this server. Set it in a container, behind NAT and behind a proxy."""
    mqtt_host: str = setting(ANY_ADDRESS, ("gateway", "front"), syntax=_LISTENING)
    """Address on which the front listens, also in `fleet up`, whose gateway connects to it."""
    mqtt_port: int = setting(1883, ("api", "gateway", "front"), syntax="port", ge=0, le=65535)
    """MQTT port of the front. Devices get it at bootstrap unless FLEET_MQTT_PUBLIC or FLEET_TLS_CERT is set. Not 8883:
    firmware uses TLS on that port."""
    mqtt_public: str | None = setting(
        None,
        ("api",),
        syntax="host:port",
        unset="the public host with FLEET_MQTT_PORT, or with 8883 if FLEET_TLS_CERT is set",
    )
    """Address of the broker for devices. With port 8883 they use TLS, with any other port they do not."""
    udp_host: str = setting(ANY_ADDRESS, ("edge",), syntax=_LISTENING)
    """Address on which an edge listens for audio."""
    udp_native: bool = setting(True, ("edge",))
    """Whether an edge uses the native part of its audio socket, if the distribution `fleet-voice-native` is installed.
    It takes a third of the CPU time off a packet; the log names the form at the start."""
    udp_port: int = setting(8884, ("edge",), syntax="port", ge=0, le=65535)
    """UDP port of the audio."""
    udp_public: str | None = setting(
        None,
        ("edge",),
        syntax="host:port",
        unset="the node's address (FLEET_NODE_NAME), else the one that FLEET_STUN_SERVERS report, else the edge does "
        "not start; with `fleet up` the public host",
    )
    """Address of this edge for devices. Each edge has its own; no load balancer may distribute its packets."""
    node_name: str = setting("", ("edge",), unset="the edge does not query Kubernetes", roles_only=True)
    """Kubernetes node whose public address the edge uses if FLEET_UDP_PUBLIC is not set."""
    node_label: str = setting("fleet/public-host", ("edge",), roles_only=True)
    """Label of that node that overrides its external address."""
    stun_servers: str = setting("", ("edge",), syntax="host[:port],…", unset="the edge queries none", roles_only=True)
    """STUN servers that an edge queries for its address if no other setting gives it."""
    http_host: str = setting(ANY_ADDRESS, ("api", "control"), syntax=_LISTENING)
    """Address on which the api listens."""
    http_port: int = setting(8000, ("worker", "api", "control"), syntax="port", ge=0, le=65535)
    """HTTP port of the api: bootstrap, photos, operators, health. A worker sends it to cameras if FLEET_HTTP_PUBLIC is
    not set."""
    http_public: str | None = setting(
        None,
        ("worker", "api", "control"),
        syntax="http(s)://host[:port]",
        unset="the address to which a device sent its bootstrap request; for cameras the public host with "
        "FLEET_HTTP_PORT, or with FLEET_HTTPS_PORT if FLEET_TLS_CERT is set",
        equal=True,
    )
    """Address of the api for devices, for firmware and photos. Set it if a proxy or TLS is in front of the api, and if
    worker and api are separate processes."""
    data_dir: Path = setting(
        Path.home() / ".local" / "share" / "fleet", ("api", "gateway", "control"), syntax="folder", masked="file"
    )
    """Folder for the keys and the Redis of `fleet up`, for the sessions of a gateway without FLEET_REDIS_URL, and for
    the operators' tokens of the api. Commands use it to find the `fleet up` of this machine."""

    @field_validator("http_public")
    @classmethod
    def _is_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[\w./-]*)?", value):
            raise ValueError("must be http://host[:port] or https://host[:port]")
        return value.rstrip("/") if value else value
