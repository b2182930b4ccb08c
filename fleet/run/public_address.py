"""The public address of an edge that runs as a separate process: configured or discovered, never guessed.

In this order: FLEET_UDP_PUBLIC; the label or the external address of the Kubernetes node; what STUN servers see. A
wrong address means devices that connect and stay silent.
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
    "set FLEET_UDP_PUBLIC to host:port, the address by which devices reach this edge; or let it be found out with "
    "FLEET_NODE_NAME (Kubernetes) or FLEET_STUN_SERVERS"
)
_ENOUGH = 2
"""Answers of STUN servers that are compared: one behind a NAT that has a port for each peer sees another one."""


@dataclass(frozen=True, slots=True)
class AddressSources:
    """Where an edge can get its public address.

    Args:
        public: FLEET_UDP_PUBLIC, host:port; nothing else counts then.
        local: Address and port on which the edge will listen.
        node: Name of the Kubernetes node; empty outside of Kubernetes.
        label: The node's label that wins over its external address.
        stun_servers: host[:port], separated by commas; empty: not asked.
        cluster: How Kubernetes is asked.
    """

    public: str | None
    local: Address
    node: str = ""
    label: str = PUBLIC_LABEL
    stun_servers: str = ""
    cluster: Cluster = field(default_factory=Cluster)

    @classmethod
    def of(cls, settings: Settings) -> "AddressSources":
        """Return what the settings say of it."""
        local = (settings.udp_host, settings.udp_port)
        return cls(settings.udp_public, local, settings.node_name, settings.node_label, settings.stun_servers)


async def find_public_address(sources: AddressSources) -> Address:
    """Return host and port by which devices reach the edge; call it before the edge opens its socket.

    Raises:
        ConfigError: There is no way to know.
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
    """Return host and port of `host:port`, or of `host` alone where there is a usual `port`.

    Raises:
        ConfigError: It is neither.
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
        if len(answers) == _ENOUGH:
            break
    if not answers:
        raise Unavailable("; ".join(failures))
    return _agreed(answers, sources.local[1])


def _agreed(answers: list[MappedAddress], port: int) -> MappedAddress:
    """Return the address in all answers.

    Raises:
        ConfigError: They differ, or a NAT changes the port: it would close when the STUN servers are forgotten.
    """
    first = answers[0]
    if any(answer != first for answer in answers):
        seen = " and ".join(f"{answer.host}:{answer.port}" for answer in answers)
        raise ConfigError(f"STUN servers see different addresses ({seen}): a NAT stands before this edge; {_REMEDY}")
    if first.port != port:
        raise ConfigError(
            f"a NAT turns UDP port {port} into {first.port}: forward a fixed port to this edge, and {_REMEDY}"
        )
    return first
