import os
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.adapters.contained import ContainedAsr, ContainedTts
from fleet.adapters.speech.asr_filtered import FilteredAsr
from fleet.adapters.speech.asr_openai import OpenAiAsr
from fleet.adapters.speech.load import load_asr, load_tts, load_turn_detector, offline_voices, spoken_languages
from fleet.adapters.speech.tts_openai import OpenAiTts
from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.adapters.speech.turn_smart import SmartTurn
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings

URL = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("language", "languages", "spoken"),
    [("auto", "en, zh", ("en", "zh")), ("zh", "en,zh", ("zh",)), ("auto", "de", ("de",))],
)
def test_the_spoken_languages_are_those_of_the_settings(language: str, languages: str, spoken: tuple[str, ...]) -> None:
    assert spoken_languages(Settings(language=language, languages=languages)) == spoken


def test_no_language_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="FLEET_LANGUAGES"):
        spoken_languages(Settings(languages=" , "))


def test_endpoints_are_used_where_they_are_named() -> None:
    settings = Settings(asr_base_url=URL, tts_base_url=URL)
    asr, tts = load_asr(settings), load_tts(settings)
    assert isinstance(asr, ContainedAsr) and isinstance(asr.inner, FilteredAsr)
    assert isinstance(asr.inner.inner, OpenAiAsr)
    assert isinstance(tts, ContainedTts) and isinstance(tts.inner, OpenAiTts)


def test_only_the_offline_set_has_voices_to_tell(tmp_path: Path) -> None:
    (tmp_path / "zf_own.f16.npy").write_bytes(b"x")
    assert offline_voices(Settings(model_dir=tmp_path)) == ("zf_own", "zf_xiaoxiao", "zm_yunxi")
    assert offline_voices(Settings(tts_base_url=URL)) == ()
    assert offline_voices(Settings(tts_base_url=URL, tts_provider="offline")) == ("zf_xiaoxiao", "zm_yunxi")


def test_the_turn_model_comes_with_the_package() -> None:
    assert isinstance(load_turn_detector(Settings()), SmartTurn)
    assert isinstance(load_turn_detector(Settings(turn_detector="silence")), SilenceTurnDetector)


def test_without_the_turn_model_silence_ends_utterances(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "smart-turn-v3.2-cpu.onnx").write_bytes(b"no model")
    assert isinstance(load_turn_detector(Settings(model_dir=tmp_path)), SilenceTurnDetector)
    assert "by silence alone" in caplog.text


def test_with_endpoints_the_offline_packages_are_not_imported() -> None:
    program = f"""
import sys
from pathlib import Path
from fleet.ground.settings import Settings
from fleet.adapters.speech.load import load_asr, load_tts
settings = Settings(asr_base_url="{URL}", tts_base_url="{URL}")
load_asr(settings), load_tts(settings)
print([name for name in ("ctranslate2", "onnxruntime", "hibari", "pypinyin") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.speech
def test_nobody_is_told_of_its_use(tmp_path: Path) -> None:
    imports = "from fleet.ground.settings import Settings\nfrom fleet.adapters.speech.load import load_vad"
    program = f"{imports}\nload_vad(Settings())"
    subprocess.run([sys.executable, "-c", program], env={**os.environ, "HOME": str(tmp_path)}, timeout=240, check=True)
    # onnxruntime keeps the identity of this device here before it reports anything.
    assert list(tmp_path.rglob("*")) == []
