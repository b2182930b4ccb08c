"""Check chat model, voice and recognition with one real request each."""

import asyncio
import struct
from contextlib import aclosing

from fleet.adapters.speech.load import SpeechSettings, load_asr, load_tts
from fleet.adapters.speech.pcm import Resampler
from fleet.core.ports import ASR_RATE, Asr, Message, TextDelta, ToolOffer, Tts
from fleet.ground.errors import ConfigError, FleetError, install_hint
from fleet.ground.settings import Settings
from fleet.ground.settings.slices import slice_of
from fleet.operations.doctor.finding import Finding, Findings, ok, problem, skipped, warning, wrong
from fleet.operations.doctor.site import SiteUnderTest
from fleet.run.llm import chat_model

_SENTENCE = "Good morning, how are you today?"
_OFFER = ToolOffer("get_time", "Returns the time of day.", {"type": "object", "properties": {}})
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
    alone = settings.model_copy(update={"llm_fallback_base_url": None})
    yield await _ask("models.llm", alone, "LLM")
    if settings.llm_fallback_base_url is not None:
        yield await _ask("models.fallback", _second(settings), "LLM_FALLBACK")


async def examine_speech(site: SiteUnderTest) -> Findings:
    """Synthesise a sentence, then recognise it."""
    pcm = b""
    try:
        tts = await asyncio.to_thread(load_tts, slice_of(site.settings, SpeechSettings))
    except (ConfigError, ModuleNotFoundError) as error:
        yield _unloaded("models.tts", "TTS", site.settings.tts_provider, site.settings.tts_base_url, error)
    else:
        try:
            finding, pcm = await _speak(tts)
            yield finding
        finally:
            await tts.aclose()
    try:
        asr = await asyncio.to_thread(load_asr, slice_of(site.settings, SpeechSettings))
    except (ConfigError, ModuleNotFoundError) as error:
        yield _unloaded("models.asr", "ASR", site.settings.asr_provider, site.settings.asr_base_url, error)
        return
    try:
        yield await _listen(asr, pcm)
    finally:
        await asr.aclose()


def _second(settings: Settings) -> Settings:
    """Return settings in which the fallback is the only chat model."""
    named = {"llm_model": settings.llm_fallback_model} if settings.llm_fallback_model else {}
    moved = {
        "llm_provider": "openai",
        "llm_base_url": settings.llm_fallback_base_url,
        "llm_api_key": settings.llm_fallback_api_key,
    }
    second = settings.model_copy(update={**moved, **named, "llm_fallback_base_url": None})
    if not named:
        second.model_fields_set.discard("llm_model")
    return second


async def _ask(check: str, settings: Settings, prefix: str) -> Finding:
    clock = asyncio.get_running_loop().time
    begun = clock()
    question = [Message("user", "Say hello in one word.")]
    try:
        async with chat_model(settings) as llm, aclosing(llm.stream(question, [_OFFER])) as events:
            async for event in events:
                kind = "a word" if isinstance(event, TextDelta) else "a tool call"
                return ok(check, f"the chat model answers: {kind} after {clock() - begun:.1f} s")
        return problem(check, "the chat model's answer is empty", f"Try another {prefix}_MODEL")
    except ConfigError as error:
        return wrong(check, str(error), f"{prefix}_BASE_URL must be the address of an OpenAI-compatible endpoint, …/v1")
    except FleetError as error:
        return problem(check, str(error), _llm_advice(str(error), prefix))


def _llm_advice(message: str, prefix: str) -> str:
    if "refused the key" in message:
        return f"Set {prefix}_API_KEY to a key of {prefix}_BASE_URL that may use {prefix}_MODEL"
    if "no such address or model" in message:
        return f"{prefix}_MODEL must be a model of the endpoint, and {prefix}_BASE_URL its base URL (mostly …/v1)"
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
        return problem("models.tts", str(error), _endpoint_advice("TTS", "TTS_VOICE")), b""
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
        return problem("models.asr", str(error), _endpoint_advice("ASR", "ASR_MODEL"))
    if pcm and not transcript.text:
        return warning("models.asr", "recognition found no text in the sentence", "Check ASR_MODEL and ASR_LANGUAGE")
    return ok("models.asr", "recognition found text in the sentence" if pcm else "recognition answers")


def _unloaded(check: str, what: str, provider: str | None, base_url: str | None, error: Exception) -> Finding:
    if provider and provider not in ("openai", "offline"):
        return wrong(check, str(error), f"Set {what}_PROVIDER to openai, offline, or an installed plugin")
    if base_url:
        return wrong(check, str(error), f"Set {what}_BASE_URL to the address of an OpenAI-compatible endpoint, …/v1")
    advice = f"Edges on this machine need it: {install_hint('speech')}. Or set {what}_BASE_URL"
    return warning(check, f"the offline set is not installed: {error}", advice)


def _endpoint_advice(what: str, other: str) -> str:
    return (
        f"Check that the endpoint of {what}_BASE_URL runs, and check {what}_API_KEY, {what}_MODEL and {other}. Without "
        f"{what}_BASE_URL fleet uses its offline set"
    )


def _peak(pcm: bytes) -> int:
    return max((abs(sample) for (sample,) in struct.iter_unpack("<h", pcm[: len(pcm) // 2 * 2])), default=0)
