"""The Kubernetes node on which this process runs, and its public address."""

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fleet.adapters.http_client import BoundedClient
from fleet.ground.errors import ConfigError, Unavailable

PUBLIC_LABEL = "fleet/public-host"
"""The label by which an operator names a node's public address."""

_EXTERNAL = ("ExternalIP", "ExternalDNS")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_LIMIT_SECONDS = 5.0
_LARGEST = 4 * 1024 * 1024
"""Bytes of Kubernetes' description of a node; with many images it has some 100 KB."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's API and the credentials that Kubernetes puts into every pod with a service account."""

    url: str = "https://kubernetes.default.svc"
    token_file: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    ca_file: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class NodeAddress(_Part):
    """One of a node's addresses."""

    type: str
    address: str


class _Metadata(_Part):
    labels: dict[str, str] = Field(default_factory=dict)


class _Status(_Part):
    addresses: list[NodeAddress] = Field(default_factory=list)


class Node(_Part):
    """A node."""

    metadata: _Metadata = Field(default_factory=_Metadata)
    status: _Status = Field(default_factory=_Status)

    def public_host(self, label: str) -> str | None:
        """Return the node's public address: its label, else the external address from the cloud; otherwise None.

        An internal address is never returned: devices outside the cluster's network cannot reach it.

        Raises:
            ConfigError: The label's value is neither a name nor an IPv4 address.
        """
        named = self.metadata.labels.get(label)
        if named is not None:
            if not _HOST.fullmatch(named):
                raise ConfigError(f"the node's label {label} is neither a name nor an IPv4 address: {named!r}")
            return named
        external = [one.address for kind in _EXTERNAL for one in self.status.addresses if one.type == kind]
        return next((address for address in external if _HOST.fullmatch(address)), None)


async def read_node(name: str, cluster: Cluster) -> Node:
    """Return a node of the cluster in which this process runs.

    Raises:
        ConfigError: This process has no service account, or one that may not read nodes; or there is no such node.
        Unavailable: The cluster does not answer.
    """
    try:
        token = cluster.token_file.read_text(encoding="ascii").strip()
        trusted = ssl.create_default_context(cafile=cluster.ca_file)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"FLEET_NODE_NAME is set, but there is no service account of a pod here ({error})") from error
    url = f"{cluster.url}/api/v1/nodes/{quote(name, safe='')}"
    try:
        async with BoundedClient(_LARGEST, _LIMIT_SECONDS, verify=trusted, trust_env=False) as client:
            response = await client.get(url, headers={"Authorization": f"Bearer {token}"})
    except httpx2.HTTPError as error:
        raise Unavailable(f"Kubernetes at {cluster.url}: {error or type(error).__name__}") from error
    return _read(response, name)


def _read(response: httpx2.Response, name: str) -> Node:
    if response.status_code in (401, 403):
        raise ConfigError(f"the service account may not read node {name}: it needs `get` on `nodes`")
    if response.status_code == 404:
        raise ConfigError(f"FLEET_NODE_NAME: there is no node {name}")
    if response.status_code != 200:
        raise Unavailable(f"Kubernetes answers {response.status_code} for node {name}")
    try:
        return Node.model_validate_json(response.content)
    except ValidationError as error:
        raise Unavailable(f"what Kubernetes says of node {name} is no node") from error
