import pytest

from fleet.adapters.speech.pinyin_phonemes import MandarinReader

pytest.importorskip("pypinyin")


@pytest.fixture(scope="module")
def reader() -> MandarinReader:
    return MandarinReader(lambda words: f"[{words}]")


@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("妈", "ma→"),
        ("麻", "ma↗"),
        ("马", "ma↓"),
        ("骂", "ma↘"),
        ("吗", "ma"),
        ("知", "ꭧɨ→"),
        ("吃", "ꭧʰɨ→"),
        ("次", "ʦʰɨ↘"),
        ("七", "ʨʰi→"),
        ("好", "xau↓"),
    ],
)
def test_syllables_are_spelled_as_kokoro_learned_them(reader: MandarinReader, text: str, phonemes: str) -> None:
    assert reader.phonemes(text) == phonemes


def test_a_character_is_read_as_its_phrase_wants(reader: MandarinReader) -> None:
    assert reader.phonemes("银行") != f"{reader.phonemes('银')}{reader.phonemes('行')}"
    assert "xa↗ŋ" in reader.phonemes("银行")


def test_numbers_are_read_in_chinese(reader: MandarinReader) -> None:
    assert reader.phonemes("30%") == reader.phonemes("百分之三十")


def test_english_words_are_read_by_the_english_reader(reader: MandarinReader) -> None:
    assert "[WiFi]" in reader.phonemes("连接WiFi。")
    assert "[Living Room]" in reader.phonemes("打开Living Room的灯")


def test_punctuation_becomes_what_the_voice_knows(reader: MandarinReader) -> None:
    assert reader.phonemes("好，好。好！好？") == "xau↓,xau↓.xau↓!xau↓?"


def test_what_nobody_can_read_is_left_out(reader: MandarinReader) -> None:
    assert reader.phonemes("好🙂テ") == "xau↓"
    assert reader.phonemes("🙂") == reader.phonemes("") == ""
