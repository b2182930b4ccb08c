"""All that can be fuzzed, by name."""

from tests.fuzz import audio_targets, identity_targets, json_targets, mqtt_targets, native_targets, text_targets
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (json_targets, identity_targets, mqtt_targets, audio_targets, native_targets, text_targets)
    for target in module.TARGETS
}
