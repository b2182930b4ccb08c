import pytest

from fleet.wire import topics

MAC = "aa:bb:cc:dd:ee:ff"


@pytest.mark.parametrize("text", ["AA-BB-CC-DD-EE-FF", "aabbccddeeff", " aa:bb:cc:dd:ee:ff ", "AABB.CCDD.EEFF"])
def test_every_usual_spelling_has_one_canonical_form(text: str) -> None:
    assert topics.canonical_mac(text) == MAC


@pytest.mark.parametrize("text", ["", "aa:bb:cc:dd:ee", "aa:bb:cc:dd:ee:fg", "aabbccddeeff00", "../../etc"])
def test_what_is_no_mac_has_no_canonical_form(text: str) -> None:
    assert topics.canonical_mac(text) is None


def test_slot_is_the_checksum_that_redis_cluster_uses() -> None:
    # CRC-16/XMODEM of "123456789" is 0x31C3 by the catalogue of checksums.
    assert topics.slot("123456789") == 0x31C3 % 256


def test_shards_take_whole_ranges_of_slots() -> None:
    filters = topics.shard_filters(3, 16)
    assert len(filters) == 32
    assert f"fleet/up/{topics.slot(MAC)}/+" in topics.shard_filters(topics.shard_of(MAC, 16), 16)
    everything = {name for shard in range(16) for name in topics.shard_filters(shard, 16)}
    assert len(everything) == 512


def test_topics_parse_back() -> None:
    assert topics.parse(topics.up_topic(MAC)) == ("up", MAC)
    assert topics.parse(topics.presence_topic(MAC)) == ("presence", MAC)


def test_a_topic_with_another_devices_slot_is_refused() -> None:
    wrong = (topics.slot(MAC) + 1) % 256
    assert topics.parse(f"fleet/up/{wrong}/{MAC}") is None
    assert topics.parse(f"fleet/up/{topics.slot(MAC)}/{MAC}/more") is None
    assert topics.parse("fleet/down/" + MAC) is None
