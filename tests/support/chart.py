"""The Helm chart, rendered by the real Helm."""

import copy
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import helm_python
import yaml

from tests.support.kubernetes_schemas import Manifest

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "fleet"
Values = dict[str, Any]

LEAST: Values = {
    "keys": {"existingSecret": "fleet-keys"},
    "publicHost": "voice.example.org",
    "broker": {"url": "mqtt://broker:1883"},
    "redis": {"existingSecret": "redis-url"},
    "models": {"llm": {"baseUrl": "http://llm.example.org/v1", "model": "some-model"}},
}
"""The fewest values that there must be."""

OWN_BROKER: Values = {"broker": {"url": ""}, "mosquitto": {"enabled": True}}
OWN_REDIS: Values = {"redis": {"existingSecret": ""}, "redisServer": {"enabled": True, "existingSecret": "redis-login"}}


def joined(*parts: Mapping[str, Any]) -> Values:
    """Return values over the least ones, the later over the earlier."""
    whole: Values = copy.deepcopy(LEAST)
    for part in parts:
        _lay(whole, part)
    return whole


def _lay(below: Values, above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(below.get(key), dict):
            _lay(below[key], value)
        else:
            below[key] = copy.deepcopy(value)


def render(values: Values, *, least: bool = True) -> list[Manifest]:
    """Return the objects of a release `voice` in the namespace `calls`.

    Args:
        values: Over the least ones.
        least: Whether the least ones are there.
    """
    given = json.dumps(joined(values) if least else values, sort_keys=True)
    return copy.deepcopy([manifest for _, text in _render(given) for manifest in _objects(text)])


def notes(values: Values) -> str:
    """Return what Helm says at the end."""
    return next(
        text for name, text in _render(json.dumps(joined(values), sort_keys=True)) if name.endswith("NOTES.txt")
    )


@functools.cache
def _render(values: str) -> list[tuple[str, str]]:
    with helm_python.Chart.load(CHART) as chart:
        return list(chart.render(values=json.loads(values), name="voice", namespace="calls").items())


@functools.cache
def _objects(text: str) -> list[Manifest]:
    if not text.lstrip().startswith(("---", "#", "apiVersion")):
        return []
    return [manifest for manifest in yaml.load_all(text, Loader=_Strict) if manifest]


class _Strict(yaml.CSafeLoader):
    """Refuses a key that is there twice: Kubernetes would take one of them."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"{twice} twice at {node.start_mark}"
        return super().construct_mapping(node, deep)


def find(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """Return the object of a kind whose name ends so."""
    (found,) = [one for one in manifests if one["kind"] == kind and one["metadata"]["name"].endswith(name)]
    return found


def kinds(manifests: list[Manifest]) -> set[str]:
    return {manifest["kind"] for manifest in manifests}


def pods(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Return the pod specs by their components."""
    return {
        manifest["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: manifest["spec"]["template"][
            "spec"
        ]
        for manifest in manifests
        if manifest["kind"] in ("Deployment", "DaemonSet", "StatefulSet")
    }


def environment(container: Manifest) -> dict[str, Any]:
    """Return variables with their values, or where these come from."""
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container.get("env", [])}
