"""Finds the public address of an edge that runs as a separate process: configured or discovered, never guessed.

Sources, in this order: FLEET_UDP_PUBLIC; the label or the external address of the Kubernetes node; STUN servers. With
a wrong address devices connect, but no audio arrives.
"""

import logging
from dataclasses import dataclass, field

from fleet.adapters.net.kubernetes_node import PUBLIC_LABEL, Cluster, read_node
from fleet.adapters.net.stun import STUN_PORT, ask_stun
from fleet.ground.errors import ConfigError, Unavailable
from fleet.ground.settings import Settings
from fleet.wire.stun import MappedAddress

log = logging.getLogger(__name__)

Address = tuple[str, int]

_REMEDY = (
    "set FLEET_UDP_PUBLIC to host:port, the address by which devices reach this edge; or set FLEET_NODE_NAME "
    "(Kubernetes) or FLEET_STUN_SERVERS, so that the edge finds it"
)
_COMPARED_ANSWERS = 2
"""STUN servers whose answers are compared: behind a NAT with a port for each peer, two servers see different ports."""


@dataclass(frozen=True, slots=True)
class AddressSources:
    """Where an edge can get its public address.

    Args:
        public: FLEET_UDP_PUBLIC, host:port; if it is set, the other sources are not used.
        local: Address and port on which the edge will listen.
        node: Name of the Kubernetes node; empty outside Kubernetes.
        label: Label of the node that takes precedence over its external address.
        stun_servers: host[:port], separated by commas; may be empty.
        cluster: Client of the Kubernetes API.
    """

    public: str | None
    local: Address
    node: str = ""
    label: str = PUBLIC_LABEL
    stun_servers: str = ""
    cluster: Cluster = field(default_factory=Cluster)

    @classmethod
    def of(cls, settings: Settings) -> "AddressSources":
        """Return the sources that the settings name."""
        local = (settings.udp_host, settings.udp_port)
        return cls(settings.udp_public, local, settings.node_name, settings.node_label, settings.stun_servers)


async def find_public_address(sources: AddressSources) -> Address:
    """Return host and port by which devices reach the edge; call it before the edge opens its socket.

    Raises:
        ConfigError: No source has an address.
        Unavailable: Kubernetes or the STUN servers do not answer; a retry may help.
    """
    if sources.public:
        return read_address(sources.public)
    if sources.node:
        host = (await read_node(sources.node, sources.cluster)).public_host(sources.label)
        if host is not None:
            log.info("public address", extra={"address": f"{host}:{sources.local[1]}", "source": "node"})
            return host, sources.local[1]
        log.info("the node has no public address", extra={"node": sources.node, "label": sources.label})
    if sources.stun_servers.strip(", "):
        seen = await _ask_stun_servers(sources)
        log.info("public address", extra={"address": f"{seen.host}:{seen.port}", "source": "stun"})
        return seen.host, seen.port
    tried = (
        f"node {sources.node} has neither the label {sources.label} nor an external address: " if sources.node else ""
    )
    raise ConfigError(f"{tried}{_REMEDY}")


def read_address(text: str, port: int | None = None) -> Address:
    """Return host and port of `host:port`, or of `host` if there is a default `port`.

    Raises:
        ConfigError: The text is neither.
    """
    host, colon, number = text.strip().rpartition(":")
    if not colon and port is not None:
        host, number = number, str(port)
    if not host or ":" in host or not number.isdecimal() or not 0 < int(number) < 65536:
        raise ConfigError(f"{text.strip()!r} is not host:port; {_REMEDY}")
    return host, int(number)


async def _ask_stun_servers(sources: AddressSources) -> MappedAddress:
    servers = [read_address(name, STUN_PORT) for name in sources.stun_servers.split(",") if name.strip()]
    answers: list[MappedAddress] = []
    failures: list[str] = []
    for server in servers:
        try:
            answers.append(await ask_stun(server, sources.local))
        except Unavailable as error:
            failures.append(str(error))
        if len(answers) == _COMPARED_ANSWERS:
            break
    if not answers:
        raise Unavailable("; ".join(failures))
    return _common_address(answers, sources.local[1])


def _common_address(answers: list[MappedAddress], port: int) -> MappedAddress:
    """Return the address that all answers hold.

    Raises:
        ConfigError: The answers differ, or a NAT changes the port: it closes that port some time after the requests.
    """
    first = answers[0]
    if any(answer != first for answer in answers):
        seen = " and ".join(f"{answer.host}:{answer.port}" for answer in answers)
        raise ConfigError(f"STUN servers see different addresses ({seen}): this edge is behind a NAT; {_REMEDY}")
    if first.port != port:
        raise ConfigError(
            f"a NAT maps UDP port {port} to {first.port}: forward a fixed port to this edge, and {_REMEDY}"
        )
    return first
