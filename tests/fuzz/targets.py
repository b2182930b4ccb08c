"""All that can be fuzzed, by name."""

from tests.fuzz import (
    audio_targets,
    http_targets,
    identity_targets,
    json_targets,
    mqtt_targets,
    native_targets,
    text_targets,
)
from tests.fuzz.target import Target

_MODULES = (
    *(json_targets, identity_targets, mqtt_targets, audio_targets),
    *(native_targets, text_targets, http_targets),
)

TARGETS: dict[str, Target] = {target.name: target for module in _MODULES for target in module.TARGETS}
