import logging
import sys

import pytest

from fleet.workbench.demo_llm import pinyin
from fleet.workbench.demo_llm.pinyin import loose_sounds, sound_alike, sounds


@pytest.fixture
def without_pypinyin(monkeypatch: pytest.MonkeyPatch) -> None:
    caches = (sounds, loose_sounds, pinyin._reader)
    monkeypatch.setitem(sys.modules, "pypinyin", None)
    for cached in caches:
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("said", "heard"),
    [("卧室", "握势"), ("中", "宗"), ("调到", "掉到"), ("音量", "音梁"), ("湿度", "思度"), ("上", "伞"), ("朋", "盆")],
)
def test_what_recognition_confuses_sounds_alike(said: str, heard: str) -> None:
    assert sound_alike(said, heard)


@pytest.mark.parametrize(("one", "other"), [("灯", "动"), ("音量", "亮度"), ("开", "关"), ("灯", "灯光")])
def test_what_differs_more_does_not(one: str, other: str) -> None:
    assert not sound_alike(one, other)


def test_only_the_loose_sounds_take_ong_for_eng() -> None:
    assert loose_sounds("动") & loose_sounds("灯")


@pytest.mark.usefixtures("without_pypinyin")
def test_without_pypinyin_only_equal_characters_match_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert sound_alike("灯光", "灯光")
        assert not sound_alike("卧室", "握势")
    assert [record.name for record in caplog.records] == ["fleet.workbench.demo_llm.pinyin"]
