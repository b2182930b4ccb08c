"""What comes through the broker: devices, shards, messages."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import slugs
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import SHORT, HistogramMetric

_HELLOS: Final = ("refused", "unavailable")
LISTS: Final = ("broken off", "page too long", "too long", "too many lists", "too slow", "unreadable")
"""Why tool lists of devices were not read to their end."""
_CODES: Final = (-32700, -32600, -32601, -32602, -32000)
REFUSALS: Final = slugs(
    [
        "hello: too often",
        *(f"hello: {phrase}" for phrase in _HELLOS),
        "call: too often",
        "tools: too late",
        *(f"tools: {fault}" for fault in LISTS),
        *(f"registrar: {code}" for code in _CODES),
        *(f"broker: {kind}" for kind in ("connections", "messages", "subscriptions", "floods")),
    ]
)
"""What a worker's `counts` count."""
MALFORMED: Final = ("device", "presence", "topic", "loss", "boot")

devices: Final = GaugeMetric("fleet_devices_online", "Devices of this worker's shards that are connected.", "worker")
shards: Final = GaugeMetric("fleet_shards_owned", "Shards that this worker owns.", "worker")
deaf: Final = GaugeMetric(
    "fleet_shards_disconnected", "Shards that this worker owns, and whose devices it does not hear now.", "worker"
)
mailbox_lag: Final = GaugeMetric(
    "fleet_mailbox_lag_seconds", "Age of the oldest message of an edge that this worker has not read.", "worker"
)
refusals: Final = CounterMetric(
    "fleet_worker_refusals",
    "What devices asked for and were refused, by reason; `broker_…` by the Mosquitto plugin, which tells the workers; "
    "`tools_too_late`: turns that began without the device's tools, whose list had not come within 2 s.",
    "worker",
    {"reason": REFUSALS},
)
renewals: Final = CounterMetric(
    "fleet_password_renewals",
    "Devices asked to restart for a new password, those whose earlier passwords were refused afterwards, and those "
    "whose were not because the list is full.",
    "worker",
    {"step": ("restart", "refused", "list_full")},
)
malformed: Final = CounterMetric(
    "fleet_malformed_frames",
    "Messages that could not be read, by what they claimed to be.",
    "worker",
    {"source": MALFORMED},
)
hello_latency: Final = HistogramMetric(
    "fleet_hello_latency_seconds",
    "From a device's hello to its answer, a refusal too.",
    "worker",
    SHORT,
)
