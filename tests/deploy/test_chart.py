"""The Helm chart: it renders with many sets of values, and what it renders is what Kubernetes takes."""

import re
import subprocess
from pathlib import Path

import helm_python
import pytest
import yaml

from tests.support.chart import CHART, OWN_REDIS, find, joined, kinds, notes, pods, render
from tests.support.chart_values import SETS
from tests.support.every import for_every
from tests.support.kubernetes_schemas import VERSIONS, faults

LIMIT = 240.0


def test_there_are_many_sets() -> None:
    assert len(SETS) >= 20


@for_every("name", SETS)
def test_set_renders_to_objects_that_kubernetes_takes(name: str) -> None:
    manifests = render(SETS[name])
    assert manifests
    assert [fault for version in VERSIONS for one in manifests for fault in faults(one, version)] == []
    names = [(one["kind"], one["metadata"]["name"]) for one in manifests]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)


def test_the_schemas_find_faults() -> None:
    worker = find(render({}), "Deployment", "worker")
    worker["spec"]["replicas"] = "three"
    worker["spec"]["template"]["spec"]["hostNetwrok"] = True
    assert len(faults(worker, VERSIONS[0])) == 2


@for_every("name", SETS)
def test_every_selector_finds_its_pods(name: str) -> None:
    manifests = render(SETS[name])
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in manifests
        if one["kind"] in ("Deployment", "DaemonSet", "StatefulSet")
    ]
    for one in manifests:
        spec = one.get("spec", {})
        wanted = spec.get("selector") if one["kind"] in ("Service", "PodDisruptionBudget") else spec.get("podSelector")
        if wanted and one["kind"] != "ServiceMonitor":
            wanted = wanted.get("matchLabels", wanted)
            assert any(wanted.items() <= each.items() for each in labels), one["metadata"]["name"]


def test_helm_lint_is_clean() -> None:
    for version in ("1.27.0", "1.36.0"):
        result = helm_python.lint(CHART, joined(), strict=True, kube_version=version)
        assert result["errors"] == []
        assert [one for one in result["messages"] if one["severity"] > 1] == []


def test_defaults_alone_say_what_is_missing() -> None:
    with pytest.raises(helm_python.HelmRenderError, match=r"keys\.existingSecret"):
        render({}, least=False)


def test_autoscaled_roles_have_no_number_of_replicas() -> None:
    for name in ("HPA", "KEDA"):
        manifests = render(SETS[name])
        assert "replicas" not in find(manifests, "Deployment", "worker")["spec"]
    assert "ScaledObject" in kinds(render(SETS["KEDA"]))
    assert "HorizontalPodAutoscaler" in kinds(render(SETS["HPA"]))


def test_an_update_begins_the_new_worker_before_the_old_one_ends() -> None:
    manifests = render({})
    for role in ("worker", "gateway", "api"):
        rolling = find(manifests, "Deployment", role)["spec"]["strategy"]["rollingUpdate"]
        assert rolling == {"maxSurge": 1, "maxUnavailable": 0}


def test_a_pod_is_given_longer_than_its_role_drains() -> None:
    slow = joined(SETS["control"], {"worker": {"drainSeconds": 240}, "edge": {"drainSeconds": 300}})
    for component, pod in pods(render(slow)).items():
        for container in pod["containers"]:
            drain = {one["name"]: one.get("value") for one in container["env"]}.get("FLEET_DRAIN_SECONDS")
            before = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])[1]
            # A role takes FLEET_DRAIN_SECONDS and at most 7 s (docs/operating/upgrade.md).
            assert pod["terminationGracePeriodSeconds"] >= float(drain or 10) + 7 + float(before), component


def test_custom_resources_are_made_only_where_they_exist() -> None:
    assert not {"ServiceMonitor", "ScaledObject"} & kinds(render({}))
    assert "ServiceMonitor" in kinds(render(SETS["Prometheus operator"]))


def test_prometheus_learns_the_role_and_the_site() -> None:
    (endpoint,) = find(render(SETS["Prometheus operator"]), "ServiceMonitor", "metrics")["spec"]["endpoints"]
    labels = {one["targetLabel"]: one.get("replacement", one.get("sourceLabels")) for one in endpoint["relabelings"]}
    assert labels == {
        "role": ["__meta_kubernetes_pod_label_app_kubernetes_io_component"],
        "site": "voice.example.org",
    }


def test_only_what_the_world_may_ask_is_in_the_ingress() -> None:
    rules = find(render(SETS["ingress"]), "Ingress", "api")["spec"]["rules"]
    assert [path["path"] for path in rules[0]["http"]["paths"]] == ["/xiaozhi", "/vision"]


def test_keys_in_values_become_lines_that_the_plugin_reads() -> None:
    secret = find(render(SETS["keys in values"]), "Secret", "keys")
    assert secret["stringData"]["keys"].split("\n") == ["k2 0123456789abcdef01", "k1 fedcba9876543210fe", ""]


def test_notes_hold_no_secret_and_name_what_is_to_do() -> None:
    text = notes(
        joined(OWN_REDIS, SETS["keys in values"], {"redisServer": {"existingSecret": "", "password": "abc123"}})
    )
    assert "abc123" not in text and "0123456789abcdef01" not in text
    assert "kubectl label node NODE fleet/public-host=ADDRESS" in text and "existingSecret" in text


def test_notes_send_devices_and_operators_to_the_right_places() -> None:
    text = notes(joined({"front": {"enabled": True, "tlsSecret": "tls"}, "edge": {"nodeSelector": {"pool": "voice"}}}))
    assert "They must reach voice.example.org:8883 (MQTT)" in text and "UDP port 8884" in text
    assert "exec deploy/voice-fleet-worker -- fleet doctor" in text and "fleet devices claims" in text
    assert "fleet devices bind CODE" in notes(joined({"activation": "code"}))
    assert "every node has" not in text.lower()
    assert "Every node has an edge" in notes(joined({}))
    assert "fleet devices bind" not in notes(joined({"activation": "open"}))


def test_the_guide_tells_how_much_was_checked() -> None:
    guide = (CHART.parents[2] / "docs" / "deploy" / "kubernetes.md").read_text()
    assert f"with {len(SETS)} sets of values" in guide


def test_the_values_of_the_quick_start_are_taken_as_they_are_written(tmp_path: Path) -> None:
    guide = (CHART.parents[2] / "docs" / "deploy" / "kubernetes.md").read_text()
    (block,) = re.findall(r"```sh\n(REGISTRY=.*?)```", guide, re.DOTALL)
    own, _, rest = block.partition("\n\n")
    (written,) = re.findall(r"^cat > values.yaml.*?^END$", rest, re.MULTILINE | re.DOTALL)
    subprocess.run(["bash", "-ec", f"{own}\n{written}"], cwd=tmp_path, timeout=LIMIT, check=True)
    values = yaml.safe_load((tmp_path / "values.yaml").read_text())
    images = {one["image"] for pod in pods(render(values, least=False)).values() for one in pod["containers"]}
    assert {image.partition(":")[0].rpartition("/")[0] for image in images} == {"registry.example.org/voice", ""}
    assert helm_python.lint(CHART, values, strict=True)["errors"] == []


def test_the_readme_names_every_value() -> None:
    values, text = yaml.safe_load((CHART / "values.yaml").read_text()), (CHART / "README.md").read_text()
    assert [name for name in values if f"`{name}`" not in text and f"`{name}." not in text] == []
    for role in ("worker", "gateway", "api", "edge", "front", "control", "mosquitto", "redisServer"):
        assert [name for name in values[role] if f".{name}" not in text and f"`{name}" not in text] == [], role
