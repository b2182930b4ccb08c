"""The node's public address, from a Kubernetes API over real HTTPS."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.adapters.net.kubernetes_node import PUBLIC_LABEL, Node, read_node
from fleet.ground.errors import ConfigError, Unavailable
from tests.support.kubernetes_api import kubernetes_api


def node(*addresses: tuple[str, str], **labels: str) -> dict[str, object]:
    status = {"addresses": [{"type": kind, "address": address} for kind, address in addresses], "capacity": {}}
    return {"kind": "Node", "metadata": {"name": "n", "labels": labels}, "status": status}


INTERNAL = ("InternalIP", "10.0.0.7")


@pytest.mark.parametrize(
    ("found", "host"),
    [
        (node(INTERNAL, ("ExternalIP", "203.0.113.7")), "203.0.113.7"),
        (node(INTERNAL, ("ExternalDNS", "n.example"), ("ExternalIP", "203.0.113.7")), "203.0.113.7"),
        (node(INTERNAL, ("ExternalDNS", "n.example")), "n.example"),
        (node(("ExternalIP", "2001:db8::7"), ("ExternalIP", "203.0.113.7")), "203.0.113.7"),
        (node(("ExternalIP", "203.0.113.7"), **{PUBLIC_LABEL: "voice.example"}), "voice.example"),
        (node(INTERNAL, ("Hostname", "n")), None),
        ({"metadata": {}}, None),
    ],
)
def test_label_then_external_address_and_no_other(found: dict[str, object], host: str | None) -> None:
    assert Node.model_validate(found).public_host(PUBLIC_LABEL) == host


def test_a_wrong_label_is_told_and_not_passed_over() -> None:
    wrong = Node.model_validate(node(("ExternalIP", "203.0.113.7"), **{PUBLIC_LABEL: "-"}))
    with pytest.raises(ConfigError, match="label"):
        wrong.public_host(PUBLIC_LABEL)


async def test_node_is_read_with_the_service_account(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(240),
        kubernetes_api(tmp_path, {"n1": node(("ExternalIP", "203.0.113.7"))}) as (_, cluster),
    ):
        assert (await read_node("n1", cluster)).public_host(PUBLIC_LABEL) == "203.0.113.7"


async def test_faults_say_what_is_wrong(tmp_path: Path) -> None:
    async with asyncio.timeout(240), kubernetes_api(tmp_path, {"odd": ["no node"]}) as (api, cluster):
        with pytest.raises(ConfigError, match="there is no node n2"):
            await read_node("n2", cluster)
        with pytest.raises(Unavailable, match="no node"):
            await read_node("odd", cluster)
        api.status = 403
        with pytest.raises(ConfigError, match="`get` on `nodes`"):
            await read_node("odd", cluster)
        api.status = 503
        with pytest.raises(Unavailable, match="503"):
            await read_node("odd", cluster)
        with pytest.raises(ConfigError, match="no service account"):
            await read_node("odd", replace(cluster, token_file=tmp_path / "none"))
        with pytest.raises(Unavailable, match="Kubernetes at"):
            await read_node("odd", replace(cluster, url="https://127.0.0.1:1"))


async def test_a_stranger_with_another_certificate_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with (
        asyncio.timeout(240),
        kubernetes_api(tmp_path, {"n1": node()}) as (_, ours),
        kubernetes_api(tmp_path / "other", {"n1": node()}) as (_, theirs),
    ):
        with pytest.raises(Unavailable):
            await read_node("n1", replace(ours, url=theirs.url))
