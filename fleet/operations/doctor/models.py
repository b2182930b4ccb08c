"""Check chat model, vision model, voice and recognition with one real request each, which holds no photo."""

import asyncio
import struct
from contextlib import aclosing

from fleet.adapters.speech.load import SpeechSettings, load_asr, load_tts, load_turn_detector
from fleet.adapters.speech.pcm import Resampler
from fleet.adapters.speech.turn_silence import SilenceTurnDetector
from fleet.core.finding import Finding, Findings, ok, problem, skipped, warning, wrong
from fleet.core.ports import ASR_RATE, Asr, Message, TextDelta, ToolOffer, Tts
from fleet.ground.errors import ConfigError, FleetError, install_hint
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.operations.doctor.site import SiteUnderTest
from fleet.run.llm import chat_model
from fleet.run.start_check import CheckedModel, chat_models, find_fault, photo_models, speech_models

_SENTENCE = "Good morning, how are you today?"
_OFFER = ToolOffer("get_time", "Returns the time of day.", {"type": "object", "properties": {}})
_CHAT_CHECKS = {"LLM": "models.llm", "LLM_FALLBACK": "models.fallback", "VISION": "models.vision"}
_KINDS = {"LLM": "chat model", "LLM_FALLBACK": "second chat model", "VISION": "vision model"}
_LEAST_SECONDS = 0.2
_AUDIBLE = 200
"""Peak of the samples, of 32767; that of a voice is far above."""


async def examine_llm(site: SiteUnderTest) -> Findings:
    settings = site.settings
    if settings.llm_base_url is None and settings.llm_provider == "openai":
        message = (
            "`fleet up` uses its demo model" if site.up else "no chat model is set; only `fleet up` has one of its own"
        )
        yield skipped("models.llm", message, "" if site.up else "set LLM_BASE_URL, LLM_MODEL and LLM_API_KEY")
        return
    models = {model.prefix: model for model in (*chat_models(settings), *photo_models(settings))}
    if settings.llm_provider != "openai":
        yield await _ask("models.llm", settings.model_copy(update={"llm_fallback_base_url": None}), "LLM")
    for prefix, check in _CHAT_CHECKS.items():
        if model := models.get(prefix):
            yield await _explained(await _ask(check, _only(settings, model), prefix), model)


async def examine_speech(site: SiteUnderTest) -> Findings:
    """Synthesise a sentence, recognise it, and judge whether its speaker has finished."""
    pcm = b""
    models = {model.prefix: model for model in speech_models(site.settings)}
    try:
        tts = await asyncio.to_thread(load_tts, slice_of(site.settings, SpeechSettings))
    except (ConfigError, ModuleNotFoundError) as error:
        yield _unloaded("models.tts", "TTS", site.settings.tts_provider, site.settings.tts_base_url, error)
    else:
        try:
            finding, pcm = await _speak(tts)
            yield await _explained(finding, models.get("TTS"))
        finally:
            await tts.aclose()
    try:
        asr = await asyncio.to_thread(load_asr, slice_of(site.settings, SpeechSettings))
    except (ConfigError, ModuleNotFoundError) as error:
        yield _unloaded("models.asr", "ASR", site.settings.asr_provider, site.settings.asr_base_url, error)
        return
    try:
        yield await _explained(await _listen(asr, pcm), models.get("ASR"))
    finally:
        await asr.aclose()
    yield await _judge_end(site.settings, pcm)


async def _explained(finding: Finding, model: CheckedModel | None) -> Finding:
    """Return a problem with the cause that the endpoint's list of models shows; any other finding as it is."""
    if finding.verdict != "problem" or model is None or (fault := await find_fault(model)) is None:
        return finding
    return problem(finding.check, fault.reason, f"{fault.remedy[0].upper()}{fault.remedy[1:]}")


def _only(settings: Settings, model: CheckedModel) -> Settings:
    """Return settings in which this model is the only chat model."""
    moved = {"llm_provider": "openai", "llm_base_url": model.url, "llm_api_key": model.key}
    named = {"llm_model": model.model} if model.model else {}
    only = settings.model_copy(update={**moved, **named, "llm_fallback_base_url": None})
    if not named:
        only.model_fields_set.discard("llm_model")
    return only


async def _ask(check: str, settings: Settings, prefix: str) -> Finding:
    """Ask for an answer; a vision model need not know tools."""
    offers = [] if prefix == "VISION" else [_OFFER]
    clock = asyncio.get_running_loop().time
    begun = clock()
    question = [Message("user", "Say hello in one word.")]
    try:
        async with chat_model(settings) as llm, aclosing(llm.stream(question, offers)) as events:
            async for event in events:
                kind = "a word" if isinstance(event, TextDelta) else "a tool call"
                return ok(check, f"the {_KINDS[prefix]} answers: {kind} after {clock() - begun:.1f} s")
        return problem(check, f"the answer of the {_KINDS[prefix]} is empty", f"Try another {prefix}_MODEL")
    except ConfigError as error:
        return wrong(check, str(error), f"{prefix}_BASE_URL must be the address of an OpenAI-compatible endpoint, …/v1")
    except FleetError as error:
        return problem(check, str(error), _advice(str(error), prefix))


def _advice(message: str, prefix: str) -> str:
    if "refused the key" in message:
        return f"Set {prefix}_API_KEY to a key of {prefix}_BASE_URL that may use {prefix}_MODEL"
    if "no such address or model" in message:
        return f"{prefix}_MODEL must be a model of the endpoint, and {prefix}_BASE_URL its base URL (mostly …/v1)"
    if prefix in ("ASR", "TTS"):
        other = "TTS_VOICE" if prefix == "TTS" else "ASR_LANGUAGE"
        return (
            f"Check that the endpoint of {prefix}_BASE_URL runs, and check {prefix}_MODEL and {other}. Without "
            f"{prefix}_BASE_URL fleet uses its offline set"
        )
    if "refused the request" in message:
        return f"The endpoint must accept streaming and tools: choose a {prefix}_MODEL that can call tools"
    return f"Check that the endpoint of {prefix}_BASE_URL runs and is reachable; LLM_SILENCE_SECONDS limits the wait"


async def _speak(tts: Tts) -> tuple[Finding, bytes]:
    resampler, pcm = Resampler(tts.sample_rate, ASR_RATE), b""
    try:
        async with aclosing(tts.speak(_SENTENCE, "en")) as pieces:
            async for piece in pieces:
                pcm += resampler.feed(piece)
    except FleetError as error:
        return problem("models.tts", str(error), _advice(str(error), "TTS")), b""
    pcm += resampler.flush()
    seconds = len(pcm) / 2 / ASR_RATE
    if seconds < _LEAST_SECONDS or _peak(pcm) < _AUDIBLE:
        advice = "The endpoint of TTS_BASE_URL must answer response_format=pcm with 16-bit mono at TTS_SAMPLE_RATE"
        return problem("models.tts", f"the voice returned {seconds:.1f} s of silence for a sentence", advice), b""
    return ok("models.tts", f"the voice spoke a sentence of {seconds:.1f} s"), pcm


async def _listen(asr: Asr, pcm: bytes) -> Finding:
    try:
        transcript = await asr.transcribe(pcm or bytes(2 * ASR_RATE))
    except FleetError as error:
        return problem("models.asr", str(error), _advice(str(error), "ASR"))
    if pcm and not transcript.text:
        return warning("models.asr", "recognition found no text in the sentence", "Check ASR_MODEL and ASR_LANGUAGE")
    return ok("models.asr", "recognition found text in the sentence" if pcm else "recognition answers")


async def _judge_end(settings: Settings, pcm: bytes) -> Finding:
    detector = await asyncio.to_thread(load_turn_detector, slice_of(settings, SpeechSettings))
    try:
        probability = await detector.finished(pcm)
    except FleetError as error:
        return warning("models.turn", str(error), "The machine may be too slow: set FLEET_TURN_DETECTOR=silence")
    finally:
        await detector.aclose()
    if settings.turn_detector != "silence" and isinstance(detector, SilenceTurnDetector):
        return warning("models.turn", "the turn model cannot be loaded", "Utterances end by silence alone; see the log")
    if isinstance(detector, SilenceTurnDetector):
        return ok("models.turn", "utterances end by silence alone")
    return ok("models.turn", f"the turn model takes a sentence for finished with {probability:.0%}")


def _unloaded(check: str, what: str, provider: str | None, base_url: str | None, error: Exception) -> Finding:
    if provider and provider not in ("openai", "offline"):
        return wrong(check, str(error), f"Set {what}_PROVIDER to openai, offline, or an installed plugin")
    if base_url:
        return wrong(check, str(error), f"Set {what}_BASE_URL to the address of an OpenAI-compatible endpoint, …/v1")
    advice = f"Edges on this machine need it: {install_hint('speech')}. Or set {what}_BASE_URL"
    return warning(check, f"the offline set is not installed: {error}", advice)


def _peak(pcm: bytes) -> int:
    return max((abs(sample) for (sample,) in struct.iter_unpack("<h", pcm[: len(pcm) // 2 * 2])), default=0)
