"""D4, D5, D9, D10 and D12 of the device's contract, against a model of the device's queue."""

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.core.playout import Playout, PlayoutStep
from fleet.core.playout_device import LEAD, MOST_FILLED, PREFILL, Pacing

TICK = 0.005
START = 1000.0
SILENCE = b"silence"


@dataclass
class Answer:
    """Runs a playout as a wheel does; `script` adds to it at times after the announcement."""

    frame_ms: int = 60
    script: list[tuple[float, str, int]] = field(default_factory=list)
    sent: list[tuple[float, bytes]] = field(default_factory=list)
    begun: list[tuple[float, int]] = field(default_factory=list)
    stopped: float | None = None
    playout: Playout | None = None
    usual: bool = False
    """Whether usual packets send themselves, as on the edge."""
    taken: int = 0
    """Packets that came so."""
    now: float = START

    def send(self, payload: bytes, /) -> bool:
        self.sent.append((self.now - START, payload))
        self.taken += 1
        return True

    def run(self, seconds: float, jitter: tuple[float, ...] = (0.0,)) -> "Answer":
        playout = self.playout = self.playout or Playout(self.frame_ms, SILENCE)
        playout.usual.attach(self, self)
        playout.start(START)
        script, due = sorted(self.script, key=lambda line: line[0]), None
        for tick in range(round(seconds / TICK)):
            now = self.now = START + tick * TICK + jitter[tick % len(jitter)]
            while script and START + script[0][0] <= now:
                self._do(playout, script.pop(0))
                due = now
            if due is not None and now >= due and self.stopped is None:
                due = playout.usual.on_timer(now) if self.usual else self.take_step(now)
        return self

    def _do(self, playout: Playout, line: tuple[float, str, int]) -> None:
        _, verb, number = line
        match verb:
            case "sentence":
                playout.begin_sentence(number // 1000)
                for at in range(number % 1000):
                    playout.queue.add([b"audio %d" % at])
                playout.end_sentence()
            case "more":
                playout.queue.add([b"more"] * number)
            case "loss":
                playout.add_loss(number)
            case "hold":
                playout.hold()
            case "go on":
                playout.go_on()
            case _:
                playout.end()

    def take_step(self, now: float) -> float | None:
        assert self.playout
        step = self.playout.step(now)
        if step.packet is not None:
            self.sent.append((now - START, step.packet))
        self.begun += [(now - START, number) for number in step.begins]
        if step.stop:
            self.stopped = now - START
        return step.again

    @property
    def audio(self) -> list[float]:
        return [at for at, packet in self.sent if packet != SILENCE]

    def queue(self) -> tuple[int, float, float]:
        """Return the device's longest queue, its longest time without anything to play, and when it was done."""
        frame = self.frame_ms / 1000
        longest, starved, done = 0, 0.0, self.sent[0][0]
        for at, _ in self.sent:
            starved = max(starved, at - done)
            done = max(done, at) + frame
            longest = max(longest, round((done - at) / frame + 0.49))
        return longest, starved, done


def sentences(*counts: int, every: float = 0.0, end: float = 0.0) -> list[tuple[float, str, int]]:
    script = [(number * every, "sentence", number * 1000 + count) for number, count in enumerate(counts)]
    return [*script, (max(end, script[-1][0]), "end", 0)]


@pytest.mark.parametrize("jitter", [(0.0,), (0.0, 0.004, 0.001), (0.0049, 0.0)])
@pytest.mark.parametrize("frame_ms", [20, 60])
def test_minute_of_speech_neither_overflows_the_device_nor_starves_it(frame_ms: int, jitter: tuple[float, ...]) -> None:
    answer = Answer(frame_ms, sentences(*[900] * (60_000 // frame_ms // 900 + 1))).run(70, jitter)
    longest, starved, _ = answer.queue()
    assert longest <= LEAD + 1
    assert starved == 0


def test_first_packets_are_spaced() -> None:
    answer = Answer(script=sentences(50)).run(1)
    first = answer.audio[:8]
    assert first[0] >= 0.1
    assert all(later - earlier >= 0.0099 for earlier, later in itertools.pairwise(first))
    assert first[PREFILL - 1] - first[0] <= 0.06
    assert first[PREFILL] - first[0] >= 0.055
    assert sum(at <= first[0] + 0.020 for at in first) <= 5


def test_audio_that_is_late_still_waits_for_nothing() -> None:
    answer = Answer(script=[(0.9, "sentence", 3), (0.9, "end", 0)]).run(3)
    assert answer.audio[0] == pytest.approx(0.9, abs=TICK)
    assert answer.sent[0][1] != SILENCE


def test_gap_between_sentences_is_filled_and_audio_follows_at_once() -> None:
    answer = Answer(script=[(0.0, "sentence", 10), (3.0, "sentence", 1010), (3.0, "end", 0)]).run(6)
    longest, starved, _ = answer.queue()
    assert starved <= 0.06
    assert longest <= LEAD + 1
    assert len(answer.sent) > 45
    assert answer.audio[10] == pytest.approx(3.0, abs=0.012)


def test_end_is_announced_after_the_last_packet_was_played() -> None:
    answer = Answer(script=sentences(20)).run(5)
    done = answer.queue()[2]
    assert answer.stopped is not None
    assert answer.stopped - answer.sent[-1][0] >= 0.05
    assert done - 0.001 <= answer.stopped <= done + LEAD * 0.06 + 0.3


def test_single_packet_is_ended_late_enough() -> None:
    answer = Answer(20, sentences(1)).run(2)
    assert answer.stopped is not None
    assert answer.stopped - answer.sent[-1][0] >= 0.05


def test_answer_without_audio_ends_at_once() -> None:
    answer = Answer(script=[(0.5, "end", 0)]).run(2)
    assert answer.stopped == pytest.approx(0.5, abs=TICK)
    assert not answer.sent


def test_end_that_comes_late_is_bridged_with_silence() -> None:
    answer = Answer(script=sentences(5, end=2.0)).run(4)
    assert answer.queue()[1] <= 0.06
    assert answer.stopped is not None
    assert 2.0 <= answer.stopped <= 2.3


def test_sentences_begin_with_their_first_packet() -> None:
    answer = Answer(script=sentences(5, 7, 3)).run(3)
    assert [number for _, number in answer.begun] == [0, 1, 2]
    assert [at for at, _ in answer.begun] == [answer.audio[0], answer.audio[5], answer.audio[12]]


def test_sentence_without_audio_begins_with_the_next_one() -> None:
    answer = Answer(script=sentences(2, 0, 2)).run(3)
    assert answer.begun == [(answer.audio[0], 0), (answer.audio[2], 1), (answer.audio[2], 2)]
    last = Answer(script=sentences(2, 0)).run(3)
    assert [number for _, number in last.begun] == [0, 1]


def test_nothing_is_sent_before_speech_was_announced() -> None:
    playout = Playout(60, SILENCE)
    playout.queue.add([b"x"])
    assert playout.step(START).again is None
    assert len(playout.queue) == 1


def test_answer_that_takes_over_keeps_the_devices_queue_in_mind() -> None:
    first = Answer(script=[(0.0, "sentence", 100)]).run(2)
    assert first.playout
    second = Answer(playout=Playout(60, SILENCE, first.playout.device))
    playout = second.playout
    assert playout
    playout.queue.add([b"y"])
    now = START + first.sent[-1][0] + 0.005
    step = playout.step(now)
    assert step.packet is None
    assert step.again is not None
    assert step.again <= now + 0.06


def test_time_lost_in_adding_is_no_reason_to_wait() -> None:
    playout = Playout(60, SILENCE)
    playout.start(START)
    playout.queue.add([b"x"])
    due = playout.step(START).again
    assert due is not None
    assert playout.step(due - 1e-9).packet == b"x"


def test_loop_that_stalled_does_not_burst() -> None:
    playout = Playout(60, SILENCE)
    playout.start(START)
    for _ in range(100):
        playout.queue.add([b"x"])
    sent, now, due = [], START + 0.2, START
    while now < START + 3:
        if now >= due and not START + 1 < now < START + 1.5:
            step = playout.step(now)
            if step.packet:
                sent.append(now)
            due = step.again or now
        now += TICK
    assert all(later - earlier >= 0.0099 for earlier, later in itertools.pairwise(sent))
    assert sum(at <= START + 1.6 for at in sent if at >= START + 1.5) <= LEAD + 1


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1.5), st.integers(0, 30)), min_size=1, max_size=6),
    st.sampled_from([20, 40, 60]),
)
def test_device_never_starves_between_first_packet_and_end(parts: list[tuple[float, int]], frame_ms: int) -> None:
    at, script = 0.0, []
    for number, (pause, count) in enumerate(parts):
        at += pause
        script.append((at, "sentence", number * 1000 + count))
    answer = Answer(frame_ms, [*script, (at, "end", 0)]).run(at + 15)
    assert answer.stopped is not None
    assert len(answer.audio) == sum(count for _, count in parts)
    assert [number for _, number in answer.begun] == list(range(len(parts)))
    if answer.sent:
        longest, starved, done = answer.queue()
        assert longest <= LEAD + 1
        assert starved <= frame_ms / 1000
        assert answer.stopped - answer.sent[-1][0] >= 0.05
        assert answer.stopped <= done + 0.3 + LEAD * frame_ms / 1000


_VERBS = st.sampled_from(["sentence", "sentence", "more", "hold", "go on", "loss"])


@given(
    st.lists(st.tuples(st.floats(0, 1.5), _VERBS, st.integers(0, 30)), min_size=1, max_size=8),
    st.sampled_from([20, 60]),
    st.sampled_from([0.0, 0.1]),
    st.booleans(),
)
def test_usual_packets_are_those_that_a_step_would_return(
    script: list[tuple[float, str, int]], frame_ms: int, loss: float, replaced: bool
) -> None:
    answers: list[Answer] = []
    for usual in (False, True):
        device = None
        if replaced:
            # Another answer was being spoken, and a packet of it planned.
            other = Playout(frame_ms, SILENCE)
            other.start(START - 1)
            other.queue.add([b"other"] * 3)
            other.step(START - 0.5)
            device = other.device
        at, lines = 0.0, []
        for number, (pause, verb, count) in enumerate(script):
            at += pause
            lines.append((at, verb, number * 1000 + count if verb == "sentence" else count))
        playout = Playout(frame_ms, SILENCE, device, Pacing(loss=loss))
        answers.append(Answer(frame_ms, [*lines, (at, "go on", 0), (at, "end", 0)], playout=playout, usual=usual))
        answers[-1].run(at + 20)
    plain, usual_first = answers
    assert (usual_first.sent, usual_first.begun) == (plain.sent, plain.begun)
    assert usual_first.stopped == plain.stopped is not None


def test_nearly_every_packet_is_a_usual_one() -> None:
    answer = Answer(script=sentences(40, 40), usual=True).run(10)
    assert answer.taken == 78 and len(answer.audio) == 80


def test_silence_inside_a_sentence_is_filled_for_two_seconds_and_audio_that_comes_then_is_sent_at_once() -> None:
    playout = Playout(60, SILENCE)
    playout.begin_sentence(0)
    playout.queue.add([b"audio"])
    playout.start(START)
    sent = [step.packet for _, step in _steps(playout, 6.0) if step.packet]
    assert sent.count(SILENCE) * 0.06 == pytest.approx(MOST_FILLED, abs=0.06)
    playout.queue.add([b"late"])
    assert playout.step(START + 6.0).packet == b"late"


def test_pause_between_sentences_is_filled_for_as_long_as_it_takes() -> None:
    playout = Playout(60, SILENCE)
    playout.begin_sentence(0)
    playout.queue.add([b"audio"])
    playout.end_sentence()
    playout.start(START)
    assert sum(step.packet == SILENCE for _, step in _steps(playout, 6.0)) > 80


def _steps(playout: Playout, seconds: float) -> list[tuple[float, PlayoutStep]]:
    return [(now, playout.step(now)) for now in (START + tick * TICK for tick in range(round(seconds / TICK)))]


def hold(answer: Answer, begin: float, end: float) -> Answer:
    """Run an answer of two sentences that is held between two times."""
    do = answer._do

    def act(playout: Playout, line: tuple[float, str, int]) -> None:
        if line[1] in ("hold", "go_on"):
            getattr(playout, line[1])()
        else:
            do(playout, line)

    answer._do = act  # type: ignore[method-assign]
    answer.script = [*sentences(40, 20), (begin, "hold", 0), (end, "go_on", 0)]
    return answer.run(12)


@pytest.mark.parametrize("length", [0.05, 0.2, 0.9])
def test_held_answer_goes_on_with_its_next_packet_and_the_lead_is_refilled(length: float) -> None:
    begin = 1.7
    answer = hold(Answer(), begin, begin + length)
    assert [packet for _, packet in answer.sent] == [b"audio %d" % at for count in (40, 20) for at in range(count)]
    assert not [at for at in answer.audio if begin + TICK <= at < begin + length - TICK]
    assert [number for _, number in answer.begun] == [0, 1]
    longest, starved, done = answer.queue()
    assert longest <= LEAD
    assert starved == pytest.approx(max(0.0, length - (LEAD - 1) * 0.06), abs=0.07)
    after = [at - begin - length for at in answer.audio if at >= begin + length - TICK]
    if length > LEAD * 0.06:
        assert after[PREFILL - 1] < PREFILL * 0.012
        assert after[LEAD - 1] < LEAD * 0.035
    assert answer.stopped is not None
    assert answer.stopped >= done - TICK


def test_end_of_an_answer_that_was_sent_waits_while_it_is_held() -> None:
    answer = hold(Answer(), 3.5, 4.4)
    assert answer.stopped is not None
    assert answer.stopped >= 4.4 - TICK


def test_a_playout_that_rests_sends_nothing_until_the_next_sentence_whose_gaps_are_filled_again() -> None:
    answer = Answer(script=[(0.0, "sentence", 5)]).run(1)
    playout = answer.playout
    assert playout is not None and answer.sent[-1][1] == SILENCE, "a gap is filled"
    playout.rest()
    times = [START + 1 + tick * TICK for tick in range(400)]
    assert [now for now in times if playout.step(now).packet] == []
    playout.begin_sentence(1)
    playout.queue.add([b"audio"])
    found = [step.packet for now in times if (step := playout.step(now + 2)).packet]
    assert found[:2] == [b"audio", SILENCE]
