"""Addresses of clips."""

import re

from fleet.wire.clips import PATH, ClipDelivery, clip_path, read_name
from fleet.wire.identity import CredentialKeys

KEYS = CredentialKeys("k1:a-key-for-tests-only-1")
DELIVERY = ClipDelivery.of(7, "aa:bb:cc:dd:ee:ff", "job-1-1")


def name() -> str:
    path = clip_path(KEYS, DELIVERY)
    assert path.startswith(f"{PATH}/")
    return path.removeprefix(f"{PATH}/").removesuffix(".ogg")


def test_an_address_names_its_delivery_and_only_a_signed_one_is_read() -> None:
    assert read_name(KEYS, name()) == DELIVERY
    assert read_name(CredentialKeys("k1:another-key-for-tests"), name()) is None
    for wrong in ("", "x", name()[:-1], name() + "a", re.sub("^7", "8", name()), name().replace("k1", "k2"), "é" * 80):
        assert read_name(KEYS, wrong) is None, wrong


def test_each_call_of_each_device_has_its_own_and_always_the_same() -> None:
    ids = {ClipDelivery.of(0, mac, call).id for mac in ("a", "b") for call in ("1", "2") for _ in range(2)}
    assert len(ids) == 4
