"""Presence messages that wait for the broker."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fleet.roles.front.presence import WINDOW, Epochs, PresenceOutbox, compose
from fleet.wire import mqtt_packet as mqtt
from fleet.wire import presence
from fleet.wire.mqtt_packet import Splitter
from fleet.wire.topics import presence_topic


def sent(raw: bytes) -> list[tuple[int, str, bytes]]:
    """Return (packet id, topic, message) of each packet."""
    heads = [mqtt.parse_publish(packet) for packet in Splitter().feed(raw)]
    assert all(head.qos == 1 and not head.retain for head in heads)
    return [(head.packet_id, head.topic.decode(), head.payload) for head in heads]


def payloads(raw: bytes) -> list[bytes]:
    return [message for _, _, message in sent(raw)]


def mac(number: int) -> str:
    return f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"


def test_message_is_what_the_workers_read() -> None:
    news = presence.parse(compose(7, online=True, ip="10.0.0.1", user="device.k1"))
    assert news == presence.Presence(online=True, epoch=7, user="device.k1")
    assert compose(7, online=False, ip="10.0.0.1", user="device.k1") == b'{"online":false,"epoch":7}'


@given(st.lists(st.integers(0, 2**52)))
def test_epochs_rise_whatever_the_clock_does(times: list[int]) -> None:
    epochs = Epochs()
    given_out = [epochs.next(now) for now in times]
    assert given_out == sorted(set(given_out))
    assert all(epoch >= now for epoch, now in zip(given_out, times, strict=True))


def test_messages_leave_in_order_each_on_its_devices_topic() -> None:
    outbox = PresenceOutbox(10, Counter())
    outbox.put(mac(1), b"a")
    outbox.put(mac(2), b"b")
    assert sent(outbox.take()) == [(1, presence_topic(mac(1)), b"a"), (2, presence_topic(mac(2)), b"b")]
    assert outbox.take() == b""


def test_latest_message_of_a_device_replaces_the_one_that_waits() -> None:
    outbox = PresenceOutbox(10, Counter())
    for device, message in ((1, b"on"), (2, b"b"), (1, b"off")):
        outbox.put(mac(device), message)
    assert payloads(outbox.take()) == [b"b", b"off"]


def test_window_bounds_what_is_unacknowledged() -> None:
    outbox = PresenceOutbox(1000, Counter())
    for number in range(WINDOW + 5):
        outbox.put(mac(number), b"%d" % number)
    first = sent(outbox.take())
    assert len(first) == WINDOW
    assert outbox.take() == b""
    outbox.acknowledge(first[0][0])
    outbox.acknowledge(9999)
    assert payloads(outbox.take()) == [b"%d" % WINDOW]


def test_unacknowledged_is_sent_again_first_unless_there_is_newer_news() -> None:
    outbox = PresenceOutbox(10, Counter())
    for device in (1, 2, 3):
        outbox.put(mac(device), b"on%d" % device)
    numbers = [number for number, _, _ in sent(outbox.take())]
    outbox.put(mac(1), b"off1")
    outbox.take()
    outbox.put(mac(2), b"off2")
    outbox.put(mac(4), b"on4")
    outbox.acknowledge(numbers[2])
    outbox.rewind()
    assert payloads(outbox.take()) == [b"off1", b"off2", b"on4"]


def test_full_outbox_drops_the_oldest_and_counts_it() -> None:
    counts: Counter[str] = Counter()
    outbox = PresenceOutbox(3, counts)
    for number in range(5):
        outbox.put(mac(number), b"%d" % number)
    assert payloads(outbox.take()) == [b"2", b"3", b"4"]
    assert counts["presence lost"] == 2


def test_packet_ids_start_again_without_meeting_one_in_use() -> None:
    outbox = PresenceOutbox(10, Counter())
    outbox.put(mac(0), b"held")
    held = sent(outbox.take())[0][0]
    seen = set()
    for number in range(70_000):
        outbox.put(mac(1), b"%d" % number)
        head = mqtt.parse_publish(Splitter().feed(outbox.take())[0])
        outbox.acknowledge(head.packet_id)
        seen.add(head.packet_id)
    assert held not in seen
    assert seen == set(range(1, 65536)) - {held}
