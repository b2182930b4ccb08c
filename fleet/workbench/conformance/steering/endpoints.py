"""The three scripted models as HTTP endpoints in OpenAI's shape; any key and any model name will do."""

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import count
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from fleet.adapters.speech.opus import SAMPLE_RATES
from fleet.adapters.speech.pcm import WavError, duration, read_wav, resample, size_of, write_wav
from fleet.workbench.conformance.steering import voice
from fleet.workbench.conformance.steering.completion import tool_names, write_call
from fleet.workbench.conformance.steering.records import Asked, HeardAudio, Spoken
from fleet.workbench.conformance.steering.scenes import Scenes
from fleet.workbench.conformance.steering.script import LONGEST_WAIT, Round, Scene
from fleet.workbench.conformance.steering.transfer import Sending, Silence, read_form, refusal
from fleet.workbench.demo_llm.body import read_body
from fleet.workbench.demo_llm.completion import DONE, Completion, usage, write_event
from fleet.workbench.demo_llm.requests import BadRequest, CompletionRequest, parse_request

MODEL = "fleet-conformance"
LARGEST_BODY = 16 * 1024 * 1024
SLOW_SECONDS = 1.5
"""Until the first piece of a slow voice; the next ones come in real time."""
SECONDS_A_CHARACTER = 0.06
LONGEST_SPEECH = 120.0
SPEECH_RATE = 24_000
_LEAST_SECONDS = 0.3
"""In shorter audio the mark cannot be read."""
_PIECE_MS = 100

_ids = count(1)


class _SpeechRequest(BaseModel):
    model_config = ConfigDict(extra="ignore")

    input: Annotated[str, Field(max_length=10_000)]
    response_format: Literal["pcm", "wav"] = "wav"
    sample_rate: int = SPEECH_RATE


def build_router(scenes: Scenes) -> APIRouter:
    """Return the routes below `/v1`."""
    router = APIRouter(prefix="/v1")
    router.add_api_route("/audio/transcriptions", Recognition(scenes).answer, methods=["POST"], response_model=None)
    router.add_api_route("/chat/completions", Chat(scenes).answer, methods=["POST"], response_model=None)
    router.add_api_route("/audio/speech", Speech(scenes).answer, methods=["POST"], response_model=None)

    @router.get("/models")
    async def list_models() -> dict[str, JsonValue]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "fleet"}]}

    return router


class Recognition:
    """Hears marks."""

    def __init__(self, scenes: Scenes) -> None:
        self._scenes = scenes

    async def answer(self, request: Request) -> Response:
        form = read_form(await read_body(request, LARGEST_BODY), request.headers.get("content-type", ""))
        if "file" not in form:
            return refusal(400, "There is no form field 'file'.", "file")
        wanted = form.get("response_format", b"json").decode(errors="replace")
        if wanted not in ("json", "verbose_json", "text"):
            return refusal(400, "'response_format' must be json, verbose_json or text.", "response_format")
        try:
            pcm, marks = await asyncio.to_thread(_hear, form["file"])
        except WavError as error:
            return refusal(400, f"Only WAV files are understood here ({error}).", "file")
        heard = HeardAudio(self._scenes.now(), duration(pcm, voice.RATE), marks, pcm)
        self._scenes.records.note_heard(heard)
        scene = self._scenes.find_heard(marks)
        if scene is None:
            self._scenes.records.note_stray("asr", f"{heard.seconds:.2f} s with marks {[one.mark for one in marks]}")
        return _transcribe(scene, wanted, heard.seconds)


def _hear(file: bytes) -> tuple[bytes, list[voice.Marked]]:
    samples, rate = read_wav(file)
    pcm = resample(samples, rate, voice.RATE)
    return pcm, voice.read(pcm)


def _transcribe(scene: Scene | None, wanted: str, seconds: float) -> Response:
    if scene and scene.asr == "error":
        return refusal(500, "This scene's recognition fails.")
    if scene and scene.asr == "silent":
        return Silence()
    text = scene.words if scene and scene.asr == "text" else ""
    if wanted == "text":
        return PlainTextResponse(text + "\n")
    if wanted == "json":
        return JSONResponse({"text": text})
    segments = [{"id": 0, "start": 0.0, "end": seconds, "text": text}] if text else []
    about = {"task": "transcribe", "language": "english", "duration": seconds}
    return JSONResponse({**about, "text": text, "segments": segments})


class Chat:
    """Thinks what the scene says."""

    def __init__(self, scenes: Scenes) -> None:
        self._scenes = scenes

    async def answer(self, request: Request) -> Response:
        body = await read_body(request, LARGEST_BODY)
        try:
            asked = parse_request(body)
        except BadRequest as error:
            return refusal(400, str(error), error.param)
        sent = json.loads(body)
        messages, tools = sent["messages"], sent.get("tools") or []
        mark, number = self._scenes.find_asked(messages)
        self._scenes.records.note_asked(mark, Asked(self._scenes.now(), tuple(messages), tuple(tools)))
        scene = self._scenes.scene(mark)
        if scene is None:
            self._scenes.records.note_stray("chat", str(messages[-1].get("content")))
        act = scene.round(number) if scene else Round("No scene matches this.")
        return await _think(act, asked, tool_names(tools))


async def _think(act: Round, asked: CompletionRequest, offered: Sequence[str]) -> Response:
    if act.trouble.silent:
        return Silence()
    if act.trouble.status:
        await asyncio.sleep(act.before)
        return refusal(act.trouble.status, "This scene's model fails.")
    calls = [write_call(call, offered) for call in act.calls]
    prompt = " ".join(message.content for message in asked.messages)
    counted = usage(prompt, " ".join((act.text, *(arguments for _, arguments in calls))))
    completion = Completion(f"chatcmpl-{next(_ids)}", asked.model, act.text, calls, counted)
    if asked.stream:
        pieces = _stream(act, completion, with_usage=asked.wants_usage)
        return Sending(pieces, "text/event-stream", cut=act.trouble.breaks_after is not None)
    if act.trouble.breaks_after is not None:
        return Sending(_half(json.dumps(completion.whole()).encode()), "application/json", cut=True)
    await asyncio.sleep(min(LONGEST_WAIT, act.before + act.pace * len(list(completion.pieces()))))
    return JSONResponse(completion.whole())


async def _stream(act: Round, completion: Completion, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
    pieces, breaks = len(list(completion.pieces())), act.trouble.breaks_after
    await asyncio.sleep(act.before)
    # The first chunk has the role and no piece.
    for at, chunk in enumerate(completion.chunks(with_usage=with_usage)):
        if breaks is not None and at > min(breaks, pieces):
            return
        if 1 < at <= pieces:
            await asyncio.sleep(act.pace)
        yield write_event(chunk)
    yield DONE


async def _half(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body[: len(body) // 2]


class Speech:
    """Says marks."""

    def __init__(self, scenes: Scenes) -> None:
        self._scenes = scenes

    async def answer(self, request: Request) -> Response:
        try:
            asked = _SpeechRequest.model_validate_json(await read_body(request, LARGEST_BODY))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            param = ".".join(str(part) for part in fault["loc"])
            return refusal(400, f"Invalid value for '{param}': {fault['msg']}.", param)
        if asked.sample_rate not in (*SAMPLE_RATES, 22_050, 32_000, 44_100):
            return refusal(400, "Unknown 'sample_rate'.", "sample_rate")
        scene, share = self._scenes.find_spoken(asked.input)
        spoken = Spoken(self._scenes.now(), asked.input)
        self._scenes.records.note_spoken(scene.mark if scene else None, spoken)
        if scene is None:
            self._scenes.records.note_stray("voice", asked.input)
        elif scene.voice == "error":
            spoken.done = True
            return refusal(500, "This scene's voice fails.")
        elif scene.voice == "silent":
            return Silence()
        pcm = await asyncio.to_thread(_perform, asked, scene, share)
        return self._send(pcm, asked, spoken, slow=scene is not None and scene.voice == "slow")

    def _send(self, pcm: bytes, asked: _SpeechRequest, spoken: Spoken, *, slow: bool) -> Response:
        is_wav = asked.response_format == "wav"
        head = write_wav(pcm, asked.sample_rate)[: -len(pcm)] if is_wav else b""
        pieces = self._play(head, pcm, asked.sample_rate, spoken, slow=slow)
        return Sending(pieces, "audio/wav" if is_wav else "audio/pcm")

    async def _play(
        self, head: bytes, pcm: bytes, rate: int, spoken: Spoken, *, slow: bool
    ) -> AsyncGenerator[bytes, None]:
        changed = self._scenes.records.changed
        try:
            await asyncio.sleep(SLOW_SECONDS if slow else 0)
            for piece in _cut(pcm, rate):
                yield head + piece
                head = b""
                spoken.seconds += duration(piece, rate)
                await asyncio.sleep(_PIECE_MS / 1000 if slow else 0)
            spoken.done = True
        finally:
            spoken.aborted = not spoken.done
            spoken.done = True
            changed.notify()


def _perform(asked: _SpeechRequest, scene: Scene | None, share: float) -> bytes:
    """Return the audio of a sentence, which is this share of its round's text."""
    seconds = SECONDS_A_CHARACTER * len(asked.input)
    if scene and scene.reply_seconds is not None:
        seconds = scene.reply_seconds * share
    seconds = min(max(seconds, _LEAST_SECONDS), LONGEST_SPEECH)
    if scene is None:
        return voice.hum(seconds, rate=asked.sample_rate)
    offset = zlib.crc32(asked.input.encode()) % 4_000 / 1_000
    return voice.say(scene.mark, seconds, rate=asked.sample_rate, offset=offset)


def _cut(pcm: bytes, rate: int) -> Iterator[bytes]:
    size = size_of(_PIECE_MS, rate)
    for at in range(0, len(pcm), size):
        yield pcm[at : at + size]
