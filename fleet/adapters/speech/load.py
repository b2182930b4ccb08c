"""The engines that the settings name: endpoints where there is a base URL, the offline set otherwise.

Either is imported when it is needed: a server with endpoints runs without the extra `speech`, and one without them
starts half a second sooner. All functions block for some seconds: call them in a thread.
"""

import logging

from pydantic import SecretStr

from fleet.adapters.speech.vad_silero import SileroVad
from fleet.core.ports import Asr, Tts
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings

log = logging.getLogger(__name__)


def load_vad(settings: Settings) -> SileroVad:
    """Return the voice activity detector; there is only the offline one.

    Raises:
        ConfigError: The model or onnxruntime is missing.
    """
    return SileroVad.load(settings.model_dir)


def load_asr(settings: Settings) -> Asr:
    """Return what recognises speech.

    Raises:
        ConfigError: A setting is wrong, or the offline set is missing.
    """
    if settings.asr_base_url:
        from fleet.adapters.speech.asr_openai import OpenAiAsr

        return OpenAiAsr(
            settings.asr_base_url,
            _reveal(settings.asr_api_key),
            settings.asr_model,
            settings.asr_language,
            settings.asr_sample_rate,
            settings.asr_timeout,
        )
    from fleet.adapters.speech.asr_whisper import WhisperAsr

    return WhisperAsr(spoken_languages(settings), settings.model_dir)


def load_tts(settings: Settings) -> Tts:
    """Return what speaks.

    Raises:
        ConfigError: A setting is wrong, or the offline set is missing.
    """
    if settings.tts_base_url:
        from fleet.adapters.speech.tts_openai import OpenAiTts

        return OpenAiTts(
            settings.tts_base_url,
            _reveal(settings.tts_api_key),
            settings.tts_model,
            settings.tts_voice,
            settings.tts_language,
            settings.tts_sample_rate,
            settings.tts_timeout,
        )
    from fleet.adapters.speech.tts_offline import LANGUAGES, OfflineTts

    if foreign := [code for code in spoken_languages(settings) if code not in LANGUAGES]:
        log.warning("no offline voice of this language, the English one reads it", extra={"languages": foreign})
    return OfflineTts(settings.zh_voice, settings.model_dir)


def spoken_languages(settings: Settings) -> tuple[str, ...]:
    """Return the languages that people may speak: the one that is set, or those that `auto` chooses from.

    Raises:
        ConfigError: None is named.
    """
    if settings.language != "auto":
        return (settings.language,)
    codes = tuple(code.strip() for code in settings.languages.split(",") if code.strip())
    if not codes:
        raise ConfigError("FLEET_LANGUAGES must name at least one language")
    return codes


def _reveal(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
