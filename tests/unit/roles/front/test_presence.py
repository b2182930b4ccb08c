"""Presence messages that wait for the broker."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from fleet.roles.front.presence import WINDOW, Epochs, PresenceOutbox, compose
from fleet.wire import presence
from fleet.wire.topics import presence_topic


def payloads(outbox: PresenceOutbox) -> list[bytes]:
    return [message for _, message, _ in outbox.take()]


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
    assert list(outbox.take()) == [(presence_topic(mac(1)), b"a", 1), (presence_topic(mac(2)), b"b", 2)]
    assert list(outbox.take()) == []


def test_latest_message_of_a_device_replaces_the_one_that_waits() -> None:
    outbox = PresenceOutbox(10, Counter())
    for device, message in ((1, b"on"), (2, b"b"), (1, b"off")):
        outbox.put(mac(device), message)
    assert payloads(outbox) == [b"b", b"off"]


def test_window_bounds_what_is_unacknowledged() -> None:
    outbox = PresenceOutbox(1000, Counter())
    for number in range(WINDOW + 5):
        outbox.put(mac(number), b"%d" % number)
    first = list(outbox.take())
    assert len(first) == WINDOW
    assert list(outbox.take()) == []
    outbox.acknowledge(first[0][2])
    outbox.acknowledge(9999)
    assert payloads(outbox) == [b"%d" % WINDOW]


def test_unacknowledged_is_sent_again_first_unless_there_is_newer_news() -> None:
    outbox = PresenceOutbox(10, Counter())
    for device in (1, 2, 3):
        outbox.put(mac(device), b"on%d" % device)
    numbers = [number for _, _, number in outbox.take()]
    outbox.put(mac(1), b"off1")
    list(outbox.take())
    outbox.put(mac(2), b"off2")
    outbox.put(mac(4), b"on4")
    outbox.acknowledge(numbers[2])
    outbox.rewind()
    assert payloads(outbox) == [b"off1", b"off2", b"on4"]


def test_full_outbox_drops_the_oldest_and_counts_it() -> None:
    counts: Counter[str] = Counter()
    outbox = PresenceOutbox(3, counts)
    for number in range(5):
        outbox.put(mac(number), b"%d" % number)
    assert payloads(outbox) == [b"2", b"3", b"4"]
    assert counts["presence lost"] == 2


def test_packet_ids_start_again_without_meeting_one_in_use() -> None:
    outbox = PresenceOutbox(10, Counter())
    outbox.put(mac(0), b"held")
    ((_, _, held),) = outbox.take()
    seen = set()
    for number in range(70_000):
        outbox.put(mac(1), b"%d" % number)
        ((_, _, packet_id),) = outbox.take()
        outbox.acknowledge(packet_id)
        seen.add(packet_id)
    assert held not in seen
    assert seen == set(range(1, 65536)) - {held}
