"""Devices, shards and messages of the broker."""

from typing import Final

from fleet.ground.metrics.counter import CounterMetric
from fleet.ground.metrics.definition import slugs
from fleet.ground.metrics.gauge import GaugeMetric
from fleet.ground.metrics.histogram import SHORT, HistogramMetric

_HELLOS: Final = ("refused", "unavailable")
LISTS: Final = ("broken off", "page too long", "too long", "too many lists", "too slow", "unreadable")
"""Reasons why the tool list of a device was not read to its end."""
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
"""The keys of a worker's `counts`."""
MALFORMED: Final = ("device", "presence", "topic", "loss", "boot")

devices: Final = GaugeMetric("fleet_devices_online", "Connected devices of this worker's shards.", "worker")
shards: Final = GaugeMetric("fleet_shards_owned", "Shards that this worker owns.", "worker")
disconnected: Final = GaugeMetric(
    "fleet_shards_disconnected", "Shards that this worker owns without a connection to the broker.", "worker"
)
inbox_lag: Final = GaugeMetric(
    "fleet_mailbox_lag_seconds", "Age of the oldest unread stream entry in this worker's inboxes.", "worker"
)
refusals: Final = CounterMetric(
    "fleet_worker_refusals",
    "Refused requests of devices, by reason; `broker_…`: refused by the Mosquitto plugin, which reports them to the "
    "workers; `tools_too_late`: turns that began without the device's tools, because no list came within 2 s.",
    "worker",
    {"reason": REFUSALS},
)
renewals: Final = CounterMetric(
    "fleet_password_renewals",
    "Renewals of passwords, by step: `restart`: devices asked to restart; `refused`: devices whose old passwords are "
    "refused since; `list_full`: devices whose old passwords stay valid because the list is full.",
    "worker",
    {"step": ("restart", "refused", "list_full")},
)
malformed: Final = CounterMetric(
    "fleet_malformed_frames",
    "Messages that could not be parsed, by source.",
    "worker",
    {"source": MALFORMED},
)
presences_replaced: Final = CounterMetric(
    "fleet_presences_replaced",
    "Connections and disconnections that were not recorded, because a newer one of the device came while they waited.",
    "worker",
)
hello_latency: Final = HistogramMetric(
    "fleet_hello_latency_seconds",
    "From a device's hello to the server's answer, refusals included.",
    "worker",
    SHORT,
)
