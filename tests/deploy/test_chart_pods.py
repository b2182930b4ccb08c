"""What the chart's pods may, and what they are told."""

from typing import Any

from tests.support.chart import environment, find, kinds, pods, render
from tests.support.chart_values import SETS
from tests.support.deployed_settings import unknown
from tests.support.every import for_every


@for_every("name", SETS)
def test_pods_are_restricted(name: str) -> None:
    for component, pod in pods(render(SETS[name])).items():
        outer = pod["securityContext"]
        assert outer["runAsNonRoot"] is True and outer["seccompProfile"] == {"type": "RuntimeDefault"}
        assert outer["runAsUser"] > 0
        assert pod.get("hostNetwork", False) == (component == "edge" and name != "edge on a host port")
        assert pod["automountServiceAccountToken"] == (component == "edge" and "FLEET_NODE_NAME" in told(pod))
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            inner = container["securityContext"]
            assert inner["allowPrivilegeEscalation"] is False and inner["readOnlyRootFilesystem"] is True
            assert inner["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
            assert "memory" in container["resources"]["limits"]
            assert "livenessProbe" in container


def told(pod: dict[str, Any]) -> dict[str, Any]:
    return environment(pod["containers"][0])


@for_every("name", SETS)
def test_images_are_pinned(name: str) -> None:
    for pod in pods(render(SETS[name])).values():
        for container in pod["containers"]:
            image = container["image"]
            assert "@sha256:" in image or image.rpartition(":")[2] not in ("", "latest", image), image


@for_every("name", SETS)
def test_every_variable_is_a_setting(name: str) -> None:
    for pod in pods(render(SETS[name])).values():
        for container in pod["containers"]:
            names = [one["name"] for one in container["env"]]
            assert unknown(set(names)) == set()
            assert len(names) == len(set(names)), names


@for_every("name", SETS)
def test_no_secret_is_written_into_a_pod(name: str) -> None:
    for pod in pods(render(SETS[name])).values():
        for container in pod["containers"]:
            for variable, value in environment(container).items():
                if variable.endswith(("_KEY", "_TOKEN", "_PASSWORD", "_AUTH")) and variable != "FLEET_TLS_KEY":
                    assert isinstance(value, dict), variable


def test_only_who_needs_it_has_a_models_key() -> None:
    found = pods(render(SETS["endpoints for speech"]))
    keys = {role: {name for name in told(pod) if name.endswith("_API_KEY")} for role, pod in found.items()}
    assert keys == {
        "worker": {"LLM_API_KEY"},
        "gateway": {"LLM_API_KEY"},
        "api": {"LLM_API_KEY", "VISION_API_KEY"},
        "edge": {"ASR_API_KEY", "TTS_API_KEY"},
    }


def test_only_who_needs_it_has_the_key_for_the_keys_of_providers() -> None:
    found = {role: told(pod).get("FLEET_SECRET_KEYS") for role, pod in pods(render(SETS["keys of providers"])).items()}
    assert {role for role, value in found.items() if value} == {"worker", "edge", "gateway", "control"}


def test_an_edge_learns_its_address_from_the_node_and_may_ask_nothing_else() -> None:
    manifests = render({})
    edge = told(pods(manifests)["edge"])
    assert edge["FLEET_NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert "FLEET_UDP_PUBLIC" not in edge
    role = find(manifests, "ClusterRole", "edge")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]


def test_an_edge_with_an_address_asks_nobody() -> None:
    manifests = render(SETS["one edge with its address"])
    assert told(pods(manifests)["edge"])["FLEET_UDP_PUBLIC"] == "203.0.113.9:8884"
    assert not {"ClusterRole", "ClusterRoleBinding"} & kinds(manifests)


def test_an_edge_with_stun_is_told_the_servers() -> None:
    edge = told(pods(render(SETS["edge with STUN only"]))["edge"])
    assert edge["FLEET_STUN_SERVERS"] == "stun.example.org:3478,s2" and "FLEET_NODE_NAME" not in edge


def test_an_edge_has_its_udp_port_on_the_node() -> None:
    for name, port in (("least", 8884), ("edge on a host port", 9000)):
        pod = pods(render(SETS[name]))["edge"]
        audio = next(one for one in pod["containers"][0]["ports"] if one["name"] == "audio")
        assert (audio["containerPort"], audio["hostPort"], audio["protocol"]) == (port, port, "UDP")
        assert told(pod)["FLEET_UDP_PORT"] == str(port)


def test_an_edge_runs_on_any_machine_unless_nodes_are_chosen() -> None:
    assert "nodeSelector" not in pods(render({}))["edge"]
    assert pods(render(SETS["placed"]))["edge"]["nodeSelector"] == SETS["placed"]["edge"]["nodeSelector"]


def test_what_the_operator_sets_for_a_role_wins() -> None:
    found = pods(render({"settings": {"FLEET_LANGUAGE": "zh"}, "worker": {"env": {"FLEET_LANGUAGE": "en"}}}))
    assert told(found["worker"])["FLEET_LANGUAGE"] == "en" and told(found["edge"])["FLEET_LANGUAGE"] == "zh"


def test_readiness_asks_more_than_liveness() -> None:
    for component, pod in pods(render({})).items():
        container = pod["containers"][0]
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz", component
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        ports = {one["name"] for one in container["ports"]}
        assert {
            container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")
        } <= ports


def test_the_policy_lets_only_our_own_pods_to_redis() -> None:
    policy = find(render(SETS["network policy with everything"]), "NetworkPolicy", "redis")
    (rule,) = policy["spec"]["ingress"]
    assert rule["ports"] == [{"port": "redis", "protocol": "TCP"}]
    assert [list(one) for one in rule["from"]] == [["podSelector"], ["ipBlock"], ["ipBlock"]]
