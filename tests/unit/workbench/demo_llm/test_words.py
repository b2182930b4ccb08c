import builtins
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fleet.workbench.demo_llm import words
from fleet.workbench.demo_llm.reading import read, spaced


@pytest.mark.parametrize(("one", "other"), [("量", "亮"), ("式", "势"), ("充", "冲"), ("英", "因"), ("调", "掉")])
def test_what_recognition_confuses_sounds_alike(one: str, other: str) -> None:
    assert words.sound(one) == words.sound(other)
    assert words.sound(one) != words.sound("家")


@pytest.fixture
def without_pypinyin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    caches = (words.sound, words._reader, words.dictionary)
    loaded = builtins.__import__

    def load(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pypinyin":
            raise ImportError(name)
        return loaded(name, *rest, **named)

    for cached in caches:
        cached.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", load)
        yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("without_pypinyin")
def test_without_pypinyin_characters_are_compared_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    assert words.sound("量") == "量"
    assert "pypinyin is not installed" in caplog.text


def test_the_file_is_complete() -> None:
    """Every concept that a row names exists, and every sentence and answer has both languages."""
    known = words.dictionary()
    rows: list[Mapping[str, Any]] = [*known.sentences.values(), *known.talk.values()]
    assert all({"en", "zh"} <= row.keys() for row in rows)
    named = {name for meaning in known.phrases.values() for names in meaning for name in names}
    named |= {name for one in known.concepts.values() for name in one.kin | one.opposite}
    assert named <= known.concepts.keys()


def test_identifiers_become_words() -> None:
    assert spaced("self.lamp.turn_on") == "self lamp turn on"
    assert spaced("startHTTPServer") == "start HTTP Server"


def test_the_unknown_rest_is_kept_as_it_was_written() -> None:
    assert read("What is the weather in New London?").rest() == "New London"
    assert read("播放一首轻松的音乐").rest() == "轻松"
    assert read("turn up the volume").rest() == ""
