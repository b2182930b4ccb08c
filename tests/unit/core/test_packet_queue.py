from fleet.core.packet_queue import MOST_PACKETS, PacketQueue


def test_sentences_begin_with_the_packet_that_was_added_after_them() -> None:
    queue = PacketQueue()
    queue.add([b"filler"])
    queue.add_sentence(0)
    queue.add([b"one", b"two"])
    queue.add_sentence(1)
    begun = []
    while queue:
        begun.append((queue.packets[0], queue.take_sentences()))
        queue.packets.popleft()
    assert begun == [(b"filler", ()), (b"one", (0,)), (b"two", ())]
    assert queue.take_sentences() == (1,), "with the packet that comes next"
    assert queue.begins_at is None


def test_sentences_without_packets_begin_together() -> None:
    queue = PacketQueue()
    for sentence in range(3):
        queue.add_sentence(sentence)
    queue.add([b"packet"])
    assert queue.take_sentences() == (0, 1, 2)
    assert queue.take_sentences() == ()


def test_room_and_sent_follow_what_is_added_and_taken() -> None:
    queue = PacketQueue()
    queue.add([b"packet"] * MOST_PACKETS)
    assert (len(queue), queue.room, queue.sent) == (MOST_PACKETS, 0, 0)
    queue.packets.popleft()
    assert (len(queue), queue.room, queue.sent) == (MOST_PACKETS - 1, 1, 1)
