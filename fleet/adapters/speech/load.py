"""Load the engines that the settings choose.

That is the provider that ASR_PROVIDER or TTS_PROVIDER names; without a name the endpoint, if there is a base URL, else
the offline set.

Modules are imported only when they are used. So a server with endpoints runs without the extra `speech`, and one with
the offline set starts half a second sooner. All functions block for some seconds: call them in a thread.
"""

import logging
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import SecretStr

from fleet.adapters.contained import ContainedAsr, ContainedTts
from fleet.adapters.plugins import load_plugin
from fleet.adapters.speech.asr_filtered import FilteredAsr
from fleet.adapters.speech.model_files import list_voices
from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.ports import Asr, AsrFactory, ProviderOptions, Tts, TtsFactory, TurnDetector
from fleet.ground.errors import ConfigError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """The settings of voice detection, recognition and voices."""

    asr_base_url: str | None
    asr_model: str
    asr_api_key: SecretStr | None
    asr_language: str | None
    asr_sample_rate: int
    asr_timeout: float
    tts_base_url: str | None
    tts_model: str
    tts_voice: str
    tts_api_key: SecretStr | None
    tts_language: str | None
    tts_sample_rate: int
    tts_timeout: float
    model_dir: Path | None
    zh_voice: str
    language: str
    languages: str
    asr_provider: str | None
    tts_provider: str | None
    turn_detector: Literal["smart-turn", "silence"]
    model_fields_set: Set[str]
    """The names of the settings that the operator set; a plugin is not given a default of the
    built-in endpoint as if the operator had chosen it."""


def load_vad(settings: SpeechSettings) -> SileroVad:
    """Return the voice activity detector; the only one is offline.

    Raises:
        ConfigError: The model or onnxruntime is missing.
    """
    return SileroVad.load(settings.model_dir)


def load_asr(settings: SpeechSettings) -> Asr:
    """Return the speech recogniser.

    Raises:
        ConfigError: A setting is wrong, or the plugin or the offline set is missing.
    """
    name = settings.asr_provider or ("openai" if settings.asr_base_url else "offline")
    if name in ASR_PROVIDERS:
        return ContainedAsr(FilteredAsr(ASR_PROVIDERS[name](settings)))
    factory: AsrFactory = load_plugin("ASR_PROVIDER", name, "fleet.asr", ASR_PROVIDERS)
    options = ProviderOptions(
        settings.asr_base_url,
        _reveal(settings.asr_api_key),
        _chosen(settings, "asr_model"),
        language=settings.asr_language,
        sample_rate=_chosen(settings, "asr_sample_rate"),
        seconds=settings.asr_timeout,
    )
    return ContainedAsr(FilteredAsr(factory(options)))


def load_turn_detector(settings: SpeechSettings) -> TurnDetector:
    """Return what judges whether a speaker has finished; silence alone, if the model cannot be loaded."""
    if settings.turn_detector == "smart-turn":
        from fleet.adapters.speech.turn_smart import SmartTurn

        try:
            return SmartTurn(settings.model_dir)
        except ConfigError as error:
            log.warning("no turn model, utterances end by silence alone", extra={"reason": str(error)})
    return SilenceTurnDetector()


def load_tts(settings: SpeechSettings) -> Tts:
    """Return the voice.

    Raises:
        ConfigError: A setting is wrong, or the plugin or the offline set is missing.
    """
    name = _tts_provider(settings)
    if name in TTS_PROVIDERS:
        return ContainedTts(TTS_PROVIDERS[name](settings))
    factory: TtsFactory = load_plugin("TTS_PROVIDER", name, "fleet.tts", TTS_PROVIDERS)
    options = ProviderOptions(
        settings.tts_base_url,
        _reveal(settings.tts_api_key),
        _chosen(settings, "tts_model"),
        voice=_chosen(settings, "tts_voice"),
        language=settings.tts_language,
        sample_rate=_chosen(settings, "tts_sample_rate"),
        seconds=settings.tts_timeout,
    )
    return ContainedTts(factory(options))


def offline_voices(settings: SpeechSettings) -> tuple[str, ...]:
    """Return the names of the Chinese offline voices; none if another engine speaks."""
    return list_voices(settings.model_dir) if _tts_provider(settings) == "offline" else ()


def _tts_provider(settings: SpeechSettings) -> str:
    return settings.tts_provider or ("openai" if settings.tts_base_url else "offline")


def spoken_languages(settings: SpeechSettings) -> tuple[str, ...]:
    """Return the languages of the users: the one that is set, or those that `auto` chooses from.

    Raises:
        ConfigError: The setting names no language.
    """
    if settings.language != "auto":
        return (settings.language,)
    codes = tuple(code.strip() for code in settings.languages.split(",") if code.strip())
    if not codes:
        raise ConfigError("FLEET_LANGUAGES must name at least one language")
    return codes


def _reveal(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


def _chosen(settings: SpeechSettings, field: str) -> Any:
    """Return a setting for a plugin; None if the operator did not set it: the default is for the built-in endpoint."""
    return getattr(settings, field) if field in settings.model_fields_set else None


def _openai_asr(settings: SpeechSettings) -> Asr:
    from fleet.adapters.speech.asr_openai import OpenAiAsr

    if not settings.asr_base_url:
        raise ConfigError("ASR_BASE_URL is missing; ASR_PROVIDER is openai")
    return OpenAiAsr(
        settings.asr_base_url,
        _reveal(settings.asr_api_key),
        settings.asr_model,
        settings.asr_language,
        settings.asr_sample_rate,
        settings.asr_timeout,
    )


def _offline_asr(settings: SpeechSettings) -> Asr:
    from fleet.adapters.speech.asr_whisper import WhisperAsr

    return WhisperAsr(spoken_languages(settings), settings.model_dir)


def _openai_tts(settings: SpeechSettings) -> Tts:
    from fleet.adapters.speech.tts_openai import OpenAiTts

    if not settings.tts_base_url:
        raise ConfigError("TTS_BASE_URL is missing; TTS_PROVIDER is openai")
    return OpenAiTts(
        settings.tts_base_url,
        _reveal(settings.tts_api_key),
        settings.tts_model,
        settings.tts_voice,
        settings.tts_language,
        settings.tts_sample_rate,
        settings.tts_timeout,
    )


def _offline_tts(settings: SpeechSettings) -> Tts:
    from fleet.adapters.speech.tts_offline import LANGUAGES, OfflineTts

    spoken = spoken_languages(settings)
    if foreign := [code for code in spoken if code not in LANGUAGES]:
        log.warning("no offline voice for a language, the English voice reads it", extra={"languages": foreign})
    return OfflineTts(settings.zh_voice, settings.model_dir, expected=spoken)


ASR_PROVIDERS: Final[Mapping[str, Callable[[SpeechSettings], Asr]]] = {"openai": _openai_asr, "offline": _offline_asr}
TTS_PROVIDERS: Final[Mapping[str, Callable[[SpeechSettings], Tts]]] = {"openai": _openai_tts, "offline": _offline_tts}
"""The built-in providers, by their names in ASR_PROVIDER and TTS_PROVIDER."""
