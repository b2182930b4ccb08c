"""Checks Kubernetes objects against the schemas of a Kubernetes version, strictly: unknown fields are faults.

Custom resources are checked against the few fields that the chart may use.
"""

import functools
import json
from importlib.resources import files
from typing import Any

import jsonschema
from jsonschema.protocols import Validator
from referencing import Registry, Resource

Manifest = dict[str, Any]

VERSIONS = ("1.27.0", "1.32.0", "1.37.0")
"""The oldest that the chart admits, one between, and the newest that is known."""

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA = {
    "type": "object",
    "required": ["name", "namespace", "labels"],
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
    },
    "additionalProperties": False,
}


def _custom(spec: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": _METADATA,
            "spec": {"type": "object", "required": list(required), "additionalProperties": False, "properties": spec},
        },
    }


_CUSTOM = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _custom(
        {
            "selector": {"type": "object", "required": ["matchLabels"]},
            "namespaceSelector": {"type": "object", "required": ["matchNames"]},
            "endpoints": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "port": {"type": "string"},
                        "interval": {"type": "string"},
                        "relabelings": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["targetLabel"],
                                "additionalProperties": False,
                                "properties": {
                                    "sourceLabels": {"type": "array", "items": {"type": "string"}},
                                    "targetLabel": {"type": "string"},
                                    "replacement": {"type": "string"},
                                },
                            },
                        },
                    },
                },
            },
        },
        "selector",
        "endpoints",
    ),
    ("keda.sh/v1alpha1", "ScaledObject"): _custom(
        {
            "scaleTargetRef": {"type": "object", "required": ["name"]},
            "minReplicaCount": {"type": "integer"},
            "maxReplicaCount": {"type": "integer"},
            "cooldownPeriod": {"type": "integer"},
            "advanced": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "horizontalPodAutoscalerConfig": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"behavior": {"type": "object"}},
                    }
                },
            },
            "triggers": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["type", "metadata"]}},
        },
        "scaleTargetRef",
        "triggers",
    ),
}


_FOUND: dict[tuple[str, str], list[str]] = {}
"""The faults of each object that was checked, by all that is in it."""


def faults(manifest: Manifest, version: str) -> list[str]:
    """Return what is wrong with an object, a line for each fault."""
    # Most values change few objects, so many sets of values render the same ones.
    key = (repr(manifest), version)
    if key not in _FOUND:
        found = _validator(manifest["apiVersion"], manifest["kind"], version).iter_errors(manifest)
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        _FOUND[key] = [f"{name} {'.'.join(map(str, fault.absolute_path))}: {fault.message}" for fault in found]
    return list(_FOUND[key])


@functools.cache
def _validator(api_version: str, kind: str, version: str) -> Validator:
    custom = _CUSTOM.get((api_version, kind))
    if custom is not None:
        return jsonschema.Draft202012Validator(custom)
    group, _, api = api_version.rpartition("/")
    place = "-".join(filter(None, (kind.lower(), group.partition(".")[0], api)))
    schema = _read(version, place)
    return jsonschema.Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _definitions(version))


@functools.cache
def _definitions(version: str) -> Registry[Any]:
    return Resource.from_contents(_read(version, "_definitions")) @ Registry()


def _read(version: str, name: str) -> Any:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{version}-local-strict"
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
