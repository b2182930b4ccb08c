"""Every codec under damaged input, short. `scripts/fuzz` runs the same checks a million times."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleet.core.text.speakable import speakable
from fleet.wire import packet, toc
from tests.fuzz import damage, json_targets, text_targets
from tests.fuzz.cases import CASES
from tests.fuzz.target import assert_sendable
from tests.fuzz.targets import TARGETS

# The same inputs in every run: what is new is for a campaign to find, not for somebody else's change.
SHORT = settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.text("\ud800\udc00", max_size=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(("name", "broke"), CASES, ids=[name for name, _ in CASES])
def test_what_once_broke_it_is_survived(name: str, broke: Any) -> None:
    TARGETS[name].check(broke)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_survived(name: str) -> None:
    target = TARGETS[name]

    @SHORT
    @given(st.randoms(use_true_random=False))
    def survive(random: Random) -> None:
        target.check(target.make(random))

    survive()


@pytest.mark.parametrize("name", TARGETS)
def test_a_campaigns_inputs_are_survived(name: str) -> None:
    target = TARGETS[name]
    for number in range(60):
        target.check(target.make(Random(f"short:{name}:{number}")))


@SHORT
@given(st.binary(max_size=200))
def test_noise_is_no_frame_and_no_audio(noise: bytes) -> None:
    for name in ("frame", "jsonrpc", "mail", "presence", "server"):
        TARGETS[name].check(noise)
    TARGETS["opus"].check([noise])
    for name in ("front", "gate", "link", "llm"):
        TARGETS[name].check([noise[:7], noise[7:]])
    header = packet.parse(noise)
    assert header is None or header.length == len(noise) - packet.HEADER
    assert toc.duration_ms(noise) in (None, 2.5, 5, 7.5, *(step * 2.5 for step in range(4, 49)))


@pytest.mark.parametrize("number", range(len(damage.seeds("device.jsonl"))))
def test_any_value_may_stand_at_any_place_of_a_message(number: int) -> None:
    line = damage.seeds("device.jsonl")[number]
    places = len(damage._places([json.loads(line)]))

    @settings(SHORT, max_examples=15)
    @given(st.integers(0, places - 1), JSON)
    def survive(place: int, value: Any) -> None:
        outer = [json.loads(line)]
        container, key = damage._places(outer)[place]
        container[key] = value
        json_targets.check_frame(json.dumps(outer[0]).encode())

    survive()


@SHORT
@given(st.lists(st.text(max_size=30), max_size=6))
def test_any_text_is_cut_and_cleaned(chunks: list[str]) -> None:
    text_targets.check_text(chunks)
    text_targets.check_spoken("".join(chunks))


@pytest.mark.parametrize("size", [10, 2000, 6000])
def test_code_is_not_spoken_however_long_it_is(size: int) -> None:
    pieces = text_targets.split(["Look:\n```python\n" + "x = 1\n" * size + "```\nDone."])
    assert [said for piece in pieces if (said := speakable(piece))] == ["Look:", "Done."]


def test_a_check_can_fail() -> None:
    with pytest.raises(UnicodeEncodeError):
        assert_sendable({"a": ["\ud800"]})
    with pytest.raises(ValueError, match="expected value"):
        json_targets.read_strictly(b'{"a": NaN}')
