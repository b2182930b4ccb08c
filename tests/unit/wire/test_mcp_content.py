import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from fleet.wire.mcp_content import describe

JPEG = "A" * 16_384


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "text", "text": "hi"}, "hi"),
        ({"type": "text"}, ""),
        ({"type": "text", "text": 5}, "5"),
        ({"text": "hi"}, "hi"),
        ({"volume": 5}, '{"volume": 5}'),
        ("hi", "hi"),
        (None, ""),
        ([1], "[1]"),
        ({"type": "image", "data": JPEG, "mimeType": "image/jpeg"}, "[image image/jpeg, 12 KB]"),
        ({"type": "image", "data": "AA==", "mimeType": "image/png"}, "[image image/png, 1 KB]"),
        ({"type": "image", "data": JPEG}, "[image, 12 KB]"),
        ({"type": "image", "data": JPEG, "mimeType": "a\n" + "b" * 99}, f"[image a {'b' * 62}, 12 KB]"),
        (
            {"type": "image", "image": f'{{"type":"image","mimeType":"image/jpeg","data":"{JPEG}"}}'},
            "[image image/jpeg, 12 KB]",
        ),
        ({"type": "image", "image": {"mimeType": "image/jpeg", "data": JPEG}}, "[image image/jpeg, 12 KB]"),
        ({"type": "image", "image": JPEG}, "[image, damaged]"),
        ({"type": "image", "image": '{"data":"' + JPEG}, "[image, damaged]"),
        ({"type": "image", "image": "[]"}, "[image, damaged]"),
        ({"type": "image", "image": "{}"}, "[image, damaged]"),
        ({"type": "image", "data": 5}, "[image, damaged]"),
        ({"type": "image"}, "[image, damaged]"),
        ({"type": "audio", "data": JPEG, "mimeType": "audio/wav"}, "[audio audio/wav, 12 KB]"),
        ({"type": "resource", "resource": {"text": "hi", "uri": "x"}}, "hi"),
        ({"type": "resource", "resource": {"blob": JPEG, "mimeType": "a/b"}}, "[resource a/b, 12 KB]"),
        ({"type": "resource", "resource": None}, "[content of type resource]"),
        ({"type": "hologram", "data": JPEG}, "[content of type hologram, 12 KB]"),
        ({"type": 5, "text": "hi"}, "hi"),
    ],
)
def test_a_part_is_put_into_words(part: JsonValue, words: str) -> None:
    assert describe(part) == words


PARTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | st.text(max_size=9) | st.integers() | st.lists(st.none()) | st.just({"data": "x"})
        for name in ("type", "text", "data", "mimeType", "image", "resource")
    },
)


@given(PARTS, st.sampled_from(["text", "image", "audio", "resource", ""]))
def test_no_part_raises(part: dict[str, JsonValue], kind: str) -> None:
    describe(part)
    describe({**part, "type": kind})
