"""What a rendered chart says of its pods, as options of a Docker engine."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.kubernetes_schemas import Manifest

Data = dict[str, dict[str, str]]
"""Secrets and ConfigMaps, each with its entries."""
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_REFERENCE = re.compile(r"\$\((\w+)\)")


def collect_data(manifests: list[Manifest], made: Data) -> Data:
    """Return the entries of all Secrets and ConfigMaps; `made` are those of the operator."""
    found = dict(made)
    for one in manifests:
        if one["kind"] in ("Secret", "ConfigMap"):
            found[one["metadata"]["name"]] = one.get("stringData") or one.get("data") or {}
    return found


def collect_environment(container: Manifest, data: Data, fields: Mapping[str, str]) -> dict[str, str]:
    """Return a container's variables with their values.

    Args:
        container: Of a pod's specification.
        data: Secrets and ConfigMaps.
        fields: What `fieldRef` can name.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= data[source["secretRef"]["name"]]
    for one in container.get("env", []):
        value = one["value"] if "value" in one else _value_from(one["valueFrom"], data, fields)
        if value is not None:
            found[one["name"]] = _REFERENCE.sub(lambda match: found[match[1]], value)
    return found


def _value_from(source: Manifest, data: Data, fields: Mapping[str, str]) -> str | None:
    if "fieldRef" in source:
        return fields[source["fieldRef"]["fieldPath"]]
    reference = source["secretKeyRef"]
    entries = data[reference["name"]]
    return entries.get(reference["key"]) if reference.get("optional") else entries[reference["key"]]


def restrictions(pod: Manifest, container: Manifest) -> dict[str, Any]:
    """Return user, groups, rights and memory of a container; the engine's seccomp profile is `RuntimeDefault`."""
    whole, own = pod["securityContext"], container["securityContext"]
    user, group = (own.get(name, whole[name]) for name in ("runAsUser", "runAsGroup"))
    memory = quantity(container["resources"]["limits"]["memory"])
    return {
        "user": f"{user}:{group}",
        "group_add": [whole["fsGroup"]],
        "read_only": own["readOnlyRootFilesystem"],
        "cap_drop": own["capabilities"]["drop"],
        "security_opt": [] if own["allowPrivilegeEscalation"] else ["no-new-privileges"],
        "mem_limit": memory,
        "memswap_limit": memory,
    }


def quantity(text: str) -> int:
    """Return the bytes that Kubernetes understands by a text."""
    return int(text[:-2]) * _UNITS[text[-2:]]


class Volumes:
    """The volumes of one pod, as folders of this machine with the owners and modes that kubelet gives them.

    Args:
        folder: For those that end with the pod.
        claims: For those that stay.
        pod: Its specification.
        data: Secrets and ConfigMaps.
        token: What the pod's service account knows; empty for none.
    """

    def __init__(self, folder: Path, claims: Path, pod: Manifest, data: Data, token: Mapping[str, str]) -> None:
        self._folder, self._claims, self._data, self._token = folder, claims, data, token
        self._group = int(pod["securityContext"]["fsGroup"])
        self._volumes = {one["name"]: one for one in pod.get("volumes", [])}
        self._made: dict[str, Path] = {}

    def mounts(self, container: Manifest) -> dict[str, Any]:
        """Return what a container sees of them."""
        binds, memory = [], {}
        for mount in container["volumeMounts"]:
            source = self._volumes.get(mount["name"], {})
            if source.get("emptyDir", {}).get("medium") == "Memory":
                size = quantity(source["emptyDir"]["sizeLimit"])
                memory[mount["mountPath"]] = f"size={size},mode=2777,gid={self._group}"
            else:
                mode = "ro" if mount.get("readOnly") else "rw"
                binds.append(f"{self._place(mount['name'], source)}:{mount['mountPath']}:{mode}")
        if self._token:
            binds.append(f"{self._written('token', self._token, 0o640)}:{TOKEN_FOLDER}:ro")
        return {"volumes": binds, "tmpfs": memory}

    def _place(self, name: str, source: Manifest) -> Path:
        if name not in self._made:
            self._made[name] = self._make(name, source)
        return self._made[name]

    def _make(self, name: str, source: Manifest) -> Path:
        if not source:
            return self._owned(self._claims / name, 0o2775)
        if "emptyDir" in source:
            return self._owned(self._folder / name, 0o2777)
        kept = source.get("secret") or source["configMap"]
        entries = self._data[kept.get("secretName") or kept["name"]]
        names = {one["key"]: one["path"] for one in kept.get("items", [])} or {key: key for key in entries}
        return self._written(name, {path: entries[key] for key, path in names.items()}, kept.get("defaultMode", 0o644))

    def _written(self, name: str, files: Mapping[str, str], mode: int) -> Path:
        place = self._owned(self._folder / name, 0o2755)
        for path, text in files.items():
            (place / path).write_text(text, encoding="utf-8")
            self._owned(place / path, mode)
        return place

    def _owned(self, path: Path, mode: int) -> Path:
        if not path.exists():
            path.mkdir(parents=True)
        os.chown(path, 0, self._group)
        path.chmod(mode)
        return path
