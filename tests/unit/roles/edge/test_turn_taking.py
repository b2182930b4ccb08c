"""S1 to S8, U12 and S15 of the device's contract, as far as an edge alone shows them."""

import asyncio
from collections.abc import Callable

import pytest

from fleet.adapters.speech.echo_stream import EchoPool
from fleet.adapters.speech.stream_state import LOST
from fleet.core.reference import NOTHING
from fleet.ground.errors import Overloaded, ProviderError, Unavailable
from fleet.ground.metrics import turns as timed
from fleet.wire import packet
from fleet.wire.edge_messages import AnswerInterruptedEvent, UtteranceEvent
from tests.support.edge_stage import LIMIT, QUIET, Device, Stage, on_stage, opus_like

UNUSED = EchoPool(lambda: pytest.fail("the scripted ears cancel nothing"))
ONE_ANSWER = ["start", "sentence_start", "stop"]


def sent_at(device: Device) -> list[int]:
    """Return the timestamps of the packets that the device received."""
    return [header.timestamp for datagram in device.received if (header := packet.parse(datagram))]


async def begin(stage: Stage, mode: str = "auto", **rest: object) -> Device:
    device = await stage.open(**rest)
    await stage.listen(mode)
    return device


async def begin_speaking(stage: Stage, mode: str = "auto", **rest: object) -> tuple[Device, str]:
    """Have one utterance answered by a long speech that has begun to be heard."""
    device = await begin(stage, mode, **rest)
    stage.voice.packets_each = 200
    if mode == "manual":
        device.send(*(opus_like(number) for number in range(1, 6)))
        await stage.received(5)
        await stage.send("listening_stopped")
    else:
        device.say()
    turn = (await stage.heard()).turn
    await stage.speak(turn, "A", "B")
    await device.packets(2)
    [session] = stage.edge._registry
    session.parts.turn_taking.ending._answered = None  # as more than a second after the utterance
    return device, turn


async def test_a_turn_is_told_in_order() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A", "B")
        await stage.told_at_least("stop")
        assert stage.told() == ["stt", "start", "sentence_start", "sentence_start", "stop"]
        assert [order["text"] for order in stage.orders if order.get("state") == "sentence_start"] == ["A", "B"]
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert stage.kinds() == ["utterance_heard", "speech_done"]
        assert [packet[1:] for packet in device.audio()] == [
            f"{text}:{number:06}".encode() for text in "AB" for number in range(3)
        ]


async def test_an_utterance_names_the_answer_that_was_heard_whole_before_it() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        first = await stage.heard()
        await stage.speak(first.turn, "A", "B")
        await stage.until(lambda: "speech_done" in stage.kinds())
        device.say(first=20)
        second = await stage.heard(2)
        await stage.speak(second.turn, "C", ended=False)
        await stage.told_at_least("stop", "start", "sentence_start")
        await stage.send("speech_aborted")
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        await stage.listen()
        device.say(first=40)
        third = await stage.heard(3)
        assert [one.heard for one in (first, second, third)] == ["", first.turn, first.turn]
        assert 0 <= second.pause_ms <= third.pause_ms, "the second answer was not heard to its end"


async def test_push_to_talk_begins_the_turn_on_release_and_not_on_silence() -> None:
    async with on_stage() as stage:
        device = await begin(stage, "manual")
        device.say(frames=4, silence=20)
        device.say(frames=4, first=10, silence=0)
        await stage.received(28)
        assert not stage.asr.heard
        await stage.send("listening_stopped")
        await stage.heard()
        assert stage.asr.markers() == [1, 2, 3, 4, 0, 10, 11, 12, 13]


@pytest.mark.parametrize("mode", ["auto", "manual", "realtime"])
async def test_utterances_are_limited_for_each_device(mode: str) -> None:
    pressed, counted = mode == "manual", timed.utterances._own
    before, sent = counted[("too_often",)], 0

    def refused(count: int) -> Callable[[], bool]:
        return lambda: counted[("too_often",)] == before + count

    async with on_stage(rate_input="0.001/2") as stage:
        device = await stage.open()
        for number in range(1, 5):
            await stage.listen(mode)
            device.say(silence=0 if pressed else 5)
            sent += 6 if pressed else 11
            await stage.received(sent)
            if pressed:
                await stage.send("listening_stopped")
            if number <= 2:
                await stage.heard(number)
                await stage.send("speech_aborted")
            else:
                await stage.until(refused(number - 2))
        assert len(stage.utterances()) == 2


async def test_push_to_talk_without_speech_says_nothing() -> None:
    async with on_stage() as stage:
        device = await begin(stage, "manual")
        device.be_silent(10)
        await stage.received(10)
        await stage.send("listening_stopped")
        await stage.until(lambda: gate(stage) == "held")
        assert not stage.asr.heard


def gate(stage: Stage) -> str:
    [session] = stage.edge._registry
    return session.parts.turn_taking.uplink.gate


def push(stage: Stage, payloads: list[bytes], first: int = 1, apart: float = 0.06) -> None:
    """Give packets to the session as they come from an open microphone, so many seconds apart."""
    [session] = stage.edge._registry
    for number, payload in enumerate(payloads):
        session.parts.turn_taking.uplink.push(first + number, payload, number * apart)


async def test_what_is_said_is_heard_though_the_word_that_the_device_listens_was_lost() -> None:
    async with on_stage() as stage:
        await stage.open()
        push(stage, [opus_like(number) for number in range(1, 41)] + [b"\x58"] * 20)
        await stage.heard()
        assert stage.asr.markers()[:40] == list(range(1, 41))


async def test_its_late_word_changes_nothing() -> None:
    async with on_stage() as stage:
        await stage.open()
        push(stage, [opus_like(number) for number in range(1, 41)])
        assert gate(stage) == "open"
        await stage.listen()
        push(stage, [b"\x58"] * 20, first=41)
        await stage.heard()
        assert stage.asr.markers()[:40] == list(range(1, 41))


async def test_a_burst_of_stored_audio_opens_nothing() -> None:
    async with on_stage() as stage:
        await stage.open()
        push(stage, [opus_like(number) for number in range(1, 41)], apart=0.01)
        assert gate(stage) == "held"


@pytest.mark.parametrize("mode", ["auto", "realtime"])
async def test_three_turns_need_one_message_that_the_device_listens(mode: str) -> None:
    async with on_stage() as stage:
        device = await begin(stage, mode)
        for number in range(1, 4):
            device.say(first=number * 10)
            turn = (await stage.heard(number)).turn
            await stage.speak(turn, "A")
            await stage.until(lambda count=number: stage.kinds().count("speech_done") == count)
        assert stage.told() == ["stt", *ONE_ANSWER] * 3
        assert len({heard.turn for heard in stage.utterances()}) == 3


@pytest.mark.parametrize("mode", ["auto", "realtime", "manual"])
async def test_abort_silences_at_once_and_stops_exactly_once(mode: str) -> None:
    async with on_stage() as stage:
        _device, turn = await begin_speaking(stage, mode)
        await stage.send("speech_aborted")
        sent = sequence(stage)
        assert stage.told()[-1] == "stop"
        await stage.send("sentence_ready", turn=turn, index=2, text="C", language="en")
        await stage.send("speech_ended", turn=turn, index=3)
        await stage.send("speech_begun", turn=turn)
        stage.voice.packets_each = 2
        await stage.speak("next", "D")
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert stage.told().count("stop") == 2
        assert stage.told().count("start") == 2
        assert "C" not in stage.voice.spoken
        assert sequence(stage) - sent <= 2


def sequence(stage: Stage) -> int:
    [session] = stage.edge._registry
    return session.parts.transport.sent


async def test_abort_is_answered_when_nothing_plays() -> None:
    async with on_stage() as stage:
        await begin(stage)
        await stage.send("speech_aborted")
        assert stage.told() == ["stop"]


async def test_abort_and_listening_at_once_begin_a_new_turn() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage)
        await stage.send("speech_aborted")
        await stage.listen()
        device.say(first=30)
        await stage.heard(2)
        assert stage.told().count("stop") == 1
        assert max(stage.asr.markers()) == 35


async def test_abort_while_the_answer_is_awaited_drops_it() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.send("speech_aborted")
        await stage.speak(turn, "A")
        assert stage.told() == ["stt", "start", "stop"]
        device.say(first=20)
        await stage.heard(2)


async def test_listening_that_is_said_again_keeps_what_was_heard() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.send(*(opus_like(number) for number in range(1, 5)))
        await stage.received(4)
        await stage.listen()
        device.say(first=5, frames=2)
        await stage.heard()
        assert stage.asr.markers()[:6] == [1, 2, 3, 4, 5, 6]


async def test_listening_that_crosses_the_announcement_of_speech_does_not_stop_it() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage)
        await stage.listen()
        await device.packets(6)
        assert "stop" not in stage.told()


async def test_listening_long_after_the_announcement_stops_the_speech_once() -> None:
    async with on_stage() as stage:
        device, _turn = await begin_speaking(stage)
        [session] = stage.edge._registry
        speech = session.parts.turn_taking.turns.downlink.speech
        assert speech
        speech.begun_at -= 5
        await stage.listen()
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        assert stage.told().count("stop") == 1
        device.say(first=30)
        await stage.heard(2)


async def test_a_late_listen_start_does_not_stop_an_answer_that_has_said_nothing() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.told_at_least("start")
        [session] = stage.edge._registry
        speech = session.parts.turn_taking.turns.downlink.speech
        assert speech
        speech.begun_at -= 5
        await stage.listen()
        await stage.speak(turn, "A")
        await stage.told_at_least("start", "sentence_start", "stop")
        assert stage.voice.spoken == ["A"]
        assert "speech_interrupted" not in stage.kinds()


async def test_user_who_speaks_over_the_answer_silences_it_in_realtime_mode() -> None:
    async with on_stage() as stage:
        device, turn = await begin_speaking(stage, "realtime")
        stage.asr.script.extend(["tell me something else"] * 4)
        device.send(*(opus_like(number) for number in range(30, 38)))
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        [interrupted] = [event for event in stage.posted if event.kind == "speech_interrupted"]
        assert (interrupted.turn, interrupted.spoken) == (turn, 1)
        sent = sequence(stage)
        device.be_silent()
        await stage.heard(2)
        assert stage.told().count("stop") == 1
        assert sequence(stage) == sent
        assert stage.asr.markers()[-9:-1] == list(range(30, 38))


async def test_own_voice_does_not_interrupt_where_the_server_should_cancel_the_echo() -> None:
    async with on_stage() as stage:
        device, _ = await begin_speaking(stage, "realtime", aec=True)
        device.send(*(opus_like(number) for number in range(30, 40)))
        await stage.until(lambda: stage.edge.counters["not_listening"] >= 10)
        assert "stop" not in stage.told()


async def test_user_interrupts_where_the_server_cancels_the_echo() -> None:
    async with on_stage() as stage:
        stage.audio_input.echo = UNUSED
        device, turn = await begin_speaking(stage, "realtime", aec=True)
        sent = sent_at(device)
        stage.asr.script.extend(["tell me something else"] * 4)
        for number, timestamp in enumerate((sent[0], 0, sent[1], *[0] * 6)):
            device.send_raw(device.seal(opus_like(30 + number), timestamp=timestamp))
        await stage.until(lambda: "speech_interrupted" in stage.kinds())
        [interrupted] = [event for event in stage.posted if event.kind == "speech_interrupted"]
        assert interrupted.turn == turn
        played = dict(zip(stage.audio_input.seen, stage.audio_input.played, strict=True))
        first, _, second, _ = (played[opus_like(30 + number)] or NOTHING for number in range(4))
        assert [dict(one.packets)[one.index] for one in (first, second)] == device.audio()[:2]
        assert first.index and second.index == first.index + 1
        assert played[opus_like(31)] == played[opus_like(33)] == NOTHING


async def test_of_a_lost_frame_nobody_knows_what_was_played() -> None:
    async with on_stage() as stage:
        stage.audio_input.echo = UNUSED
        device, _ = await begin_speaking(stage, "realtime", aec=True)
        await device.packets(4)
        sent = sent_at(device)
        frames = [device.seal(opus_like(30 + at, QUIET), timestamp=sent[at]) for at in range(4)]
        for at in (0, 2, 3, 4, 5):
            device.send_raw(frames[at] if at < 4 else device.seal(opus_like(30 + at, QUIET)))
        await stage.until(lambda: LOST in stage.audio_input.seen)
        assert stage.audio_input.played[stage.audio_input.seen.index(LOST)] is None


async def test_our_own_words_are_no_question_where_the_server_cancels_the_echo() -> None:
    async with on_stage() as stage:
        stage.audio_input.echo = UNUSED
        device = await begin(stage, "realtime", aec=True)
        stage.voice.packets_each = 200
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "The weather tomorrow will be sunny.")
        await device.packets(2)
        stage.asr.script.append("weather tomorrow will be")
        first = sent_at(device)[0]
        device.send_raw(device.seal(opus_like(30), timestamp=first))
        device.say(first=31, frames=6)
        await stage.until(lambda: stage.edge.counters["own_words"])
        assert len(stage.utterances()) == 1


async def test_user_is_not_heard_while_the_server_greets_in_auto_mode() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.be_silent(1)
        await stage.received(1)
        await stage.speak("greeting", "A")
        device.say()
        await stage.until(lambda: "speech_done" in stage.kinds())
        assert not stage.asr.heard
        device.say(first=20)
        await stage.heard()


async def test_noise_without_words_is_passed_over_and_what_came_meanwhile_is_heard() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        transcript: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stage.asr.script.append(transcript)
        device.say(silence=4)
        await stage.until(lambda: stage.asr.heard)
        device.send(*(opus_like(number) for number in range(20, 26)))
        await stage.received(16)
        transcript.set_result("  ")
        device.be_silent()
        await stage.heard()
        assert stage.told() == ["stt", "start"]
        assert [value for value in stage.asr.markers() if value] == list(range(20, 26))


@pytest.mark.parametrize("failure", [ProviderError("down", retryable=False), Overloaded("asr")])
async def test_failed_recognition_is_apologised_for_and_the_next_turn_works(failure: Exception) -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.asr.script.append(failure)
        device.say()
        await stage.told_at_least("stop")
        assert stage.told() == ONE_ANSWER
        assert stage.voice.spoken == ["Sorry, I did not understand that."]
        device.say(first=20)
        await stage.heard()
        assert stage.kinds() == ["utterance_heard"]


async def test_nothing_is_announced_when_even_the_apology_fails() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.asr.script.append(ProviderError("down", retryable=False))
        stage.voice.fail_at, stage.voice.failure = 0, ProviderError("down", retryable=False)
        device.say()
        await stage.until(lambda: stage.voice.spoken)
        await stage.until(lambda: gate(stage) == "open")
        device.say(first=20)
        await stage.heard()
        assert stage.told() == ["stt", "start"]


async def test_utterance_that_cannot_be_delivered_is_apologised_for() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.post_failure = Unavailable("redis is away")
        device.say()
        await stage.told_at_least(*ONE_ANSWER)
        assert stage.voice.spoken == ["Sorry, I cannot answer right now."]
        stage.post_failure = None
        device.say(first=20)
        await stage.heard()


async def test_utterance_that_was_delivered_though_nobody_knew_is_not_answered_after_the_apology() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        stage.post_failure = Unavailable("redis is away")
        device.say()
        await stage.told_at_least(*ONE_ANSWER)
        [turn] = {event.turn for event in stage.refused if isinstance(event, UtteranceEvent)}
        await stage.speak(turn, "A")
        assert stage.voice.spoken == ["Sorry, I cannot answer right now."]
        assert stage.told() == ["stt", *ONE_ANSWER]


async def test_an_older_turn_is_not_spoken_once_something_newer_was_said() -> None:
    async with on_stage() as stage:
        device = await begin(stage, "realtime")
        device.say()
        older = (await stage.heard()).turn
        [session] = stage.edge._registry
        session.parts.turn_taking.ending._answered = None  # as more than a second after the utterance
        device.say(first=20)
        newer = (await stage.heard(2)).turn
        await stage.speak(older, "old")
        await stage.speak(newer, "new")
        await stage.told_at_least("sentence_start", "stop")
        assert stage.voice.spoken == ["new"]


async def test_an_answer_that_another_worker_goes_on_with_is_spoken_once() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A", "B", ended=False)
        await device.packets(4)
        await stage.send("turn_working", turn=turn)
        await stage.speak(turn, "A", "B", "C")
        await stage.speak(turn, "A", "B", "C")
        await stage.told_at_least("stop")
        await stage.speak(turn, "A", "B", "C")
        assert stage.voice.spoken == ["A", "B", "C"]
        assert stage.told() == ["stt", "start", *["sentence_start"] * 3, "stop"]


async def test_answer_without_words_lets_the_user_go_on() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.send("speech_ended", turn=turn, index=0)
        await stage.told_at_least("stt", "start", "stop")
        device.say(first=20)
        await stage.heard(2)
        assert stage.told() == ["stt", "start", "stop", "stt", "start"]


async def test_shard_that_never_answers_is_given_up() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        await stage.heard()
        stage.pass_time(64)
        assert stage.edge._registry.find("aa:bb:cc:dd:ee:01", "s1")
        assert not stage.voice.spoken
        stage.pass_time(66)
        await stage.told_at_least("stop")
        assert stage.told() == ["stt", *ONE_ANSWER]
        assert stage.voice.spoken == ["Sorry, I cannot answer right now."]
        await stage.until(lambda: gate(stage) == "open")
        device.say(first=20)
        await stage.heard(2)


async def test_shard_is_told_that_it_was_given_up_and_what_it_says_then_is_not_spoken() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        stage.pass_time(66)
        await stage.told_at_least("stop")
        await stage.speak(turn, "A")
        device.say(first=20)
        await stage.heard(2)
        assert stage.voice.spoken == ["Sorry, I cannot answer right now."]
        assert stage.told() == ["stt", *ONE_ANSWER, "stt", "start"]
        cut = [event for event in stage.posted if isinstance(event, AnswerInterruptedEvent)]
        assert [(event.turn, event.spoken) for event in cut] == [(turn, 0)]


async def test_apology_of_a_turn_that_is_given_up_is_in_its_users_language() -> None:
    async with on_stage(languages="en,zh") as stage:
        device = await begin(stage)
        stage.asr.language = "zh"
        device.say()
        await stage.heard()
        stage.pass_time(66)
        await stage.told_at_least("stop")
        assert stage.voice.spoken == ["抱歉，我现在无法回答。"]


async def test_shard_that_falls_silent_in_the_middle_of_an_answer_is_given_up() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.say()
        turn = (await stage.heard()).turn
        await stage.speak(turn, "A", ended=False)
        await device.packets(3)
        stage.pass_time(66)
        await stage.told_at_least(*ONE_ANSWER, *ONE_ANSWER)
        assert stage.told() == ["stt", *ONE_ANSWER, *ONE_ANSWER]
        assert stage.voice.spoken == ["A", "Sorry, I cannot answer right now."]
        cut = [event for event in stage.posted if isinstance(event, AnswerInterruptedEvent)]
        assert [(event.turn, event.spoken) for event in cut] == [(turn, 1)]


async def test_silent_session_is_reported_once() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.be_silent()
        await stage.received(5)
        stage.pass_time(59)
        await stage.until(lambda: stage.edge._services.outbox._queue.empty())
        assert not stage.posted
        stage.pass_time(61)
        stage.pass_time(62)
        await stage.until(lambda: stage.posted)
        assert [(event.kind, event.reason) for event in stage.posted] == [("session_silent", "idle")]


async def test_session_that_nobody_uses_is_reported() -> None:
    async with on_stage() as stage:
        await stage.open()
        stage.pass_time(14)
        stage.pass_time(16)
        await stage.until(lambda: stage.posted)
        assert [(event.kind, event.reason) for event in stage.posted] == [("session_silent", "unused")]


async def test_session_is_not_idle_while_an_answer_is_awaited() -> None:
    async with on_stage(idle_seconds=10) as stage:
        device = await begin(stage)
        device.say()
        await stage.heard()
        stage.pass_time(40)
        await stage.until(lambda: stage.edge._services.outbox._queue.empty())
        assert stage.kinds() == ["utterance_heard"]


async def test_closed_session_falls_silent_without_a_word() -> None:
    async with on_stage() as stage:
        device, turn = await begin_speaking(stage)
        await stage.send("session_closed")
        told = stage.told()
        device.say(first=20)
        await stage.received(22)
        await stage.speak(turn, "C")
        assert stage.told() == told
        assert stage.edge.load == 0
        assert stage.edge.counters["command_without_session"] == 3


async def test_new_session_of_a_device_ends_the_old_one_silently() -> None:
    async with on_stage() as stage:
        await begin_speaking(stage)
        told = stage.told()
        [old] = stage.edge._registry
        device = await stage.open(ssrc=7, session="s2")
        sent = old.parts.transport.sent
        await stage.send("listening_started", session="s2", mode="auto")
        device.say()
        heard = await stage.heard(2)
        assert heard.session == "s2"
        assert stage.told() == [*told, "stt", "start"]
        assert stage.edge.load == 1
        assert old.parts.transport.sent == sent


async def test_session_in_a_dialect_or_format_that_is_unknown_is_refused() -> None:
    strange = ({"dialect": "x"}, {"dialect": "registrar"}, {"key": "00"}, {"uplink_frame_ms": 7}, {"downlink_rate": 1})
    async with on_stage() as stage:
        for number, wrong in enumerate(strange):
            await stage.open(session=f"s{number}", **wrong)
        assert stage.edge.load == 0
        await stage.until(lambda: len(stage.posted) == len(strange))


async def test_newer_utterance_takes_the_place_of_one_that_is_still_recognised() -> None:
    async with on_stage() as stage:
        device = await begin(stage, "realtime")
        stage.asr.script.append(asyncio.get_running_loop().create_future())
        device.say()
        await stage.until(lambda: len(stage.asr.heard) == 1)
        device.say(first=20)
        heard = await stage.heard()
        assert heard.text == "hello"
        assert stage.told() == ["stt", "start"]


async def test_quiet_frames_alone_are_no_utterance() -> None:
    async with on_stage() as stage:
        device = await begin(stage)
        device.send(*(opus_like(number, QUIET) for number in range(1, 31)))
        await stage.received(30)
        device.say(first=40)
        async with asyncio.timeout(LIMIT):
            await stage.heard()
        assert len(stage.asr.heard) == 1
