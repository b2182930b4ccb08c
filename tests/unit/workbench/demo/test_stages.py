import pytest

from fleet.workbench.demo.stages import HEARD, MEANINGS, NAMES, OUTSIDE, START, StageTimer, medians, split_stages
from fleet.workbench.local_servers.log_line import LogLine

LOG = [
    LogLine("info", "utterance ended", {"endpoint_seconds": 0.6, "speech_seconds": 1.2}),
    LogLine("info", "utterance recognised", {"asr_seconds": 0.4}),
    LogLine("info", "llm first token", {"seconds": 0.05}),
    LogLine("info", "first sentence", {"seconds": 0.1}),
    LogLine("info", "first audio ready", {"tts_seconds": 0.2}),
    LogLine("info", "first packet sent", {"since_end_of_speech": 1.35}),
    LogLine("info", "speech done", {"seconds": 9.0}),
]


def measured(heard: float = 1500.0) -> dict[str, float]:
    timer = StageTimer()
    for line in LOG:
        timer.add(line)
    return dict(timer.read({"first_audible": heard, "stt": 1.0}))


def test_every_stage_is_read_in_order() -> None:
    assert measured() == dict(zip(NAMES, (0.6, 0.4, 0.05, 0.1, 0.2, 1.35, 1.5), strict=True))
    assert list(measured()) == list(NAMES)


def test_the_first_measurement_of_a_turn_counts_and_a_new_turn_begins_empty() -> None:
    timer = StageTimer()
    timer.add(LOG[0])
    timer.add(LogLine("info", "utterance ended", {"endpoint_seconds": 9.0}))
    assert timer.read({}) == {"end of turn": 0.6}
    timer.restart()
    assert timer.read({}) == {}


def test_a_line_without_its_measurement_is_left_out() -> None:
    timer = StageTimer()
    timer.add(LogLine("info", "first packet sent", {}))
    assert timer.read({}) == {}


def test_the_parts_add_up_to_what_was_heard() -> None:
    cut = split_stages(measured())
    assert sum(cut.values()) == pytest.approx(1.5)
    assert split_stages({"ASR": 0.4}) == {}


def test_the_servers_parts_are_the_servers_whole_and_the_way_is_what_the_device_has_beyond_it() -> None:
    cut = split_stages(measured())
    assert cut[START] == pytest.approx(1.35 - 0.6 - 0.4 - 0.1 - 0.2)
    assert cut[OUTSIDE] == pytest.approx(1.5 - 1.35)


def test_what_the_server_takes_does_not_depend_on_the_devices_clock() -> None:
    early, late = split_stages(measured(heard=1400.0)), split_stages(measured(heard=2400.0))
    assert {name: seconds for name, seconds in early.items() if name != OUTSIDE} == {
        name: seconds for name, seconds in late.items() if name != OUTSIDE
    }


def test_no_part_is_negative() -> None:
    assert split_stages(measured(heard=900.0))[OUTSIDE] == 0.0
    assert min(split_stages({"heard": 1.0, "ASR": 0.4}).values()) == 0.0


def test_each_time_says_on_whose_clock_it_is() -> None:
    assert {name: meaning.partition(":")[0] for name, meaning in MEANINGS.items()} == {
        name: "device" if name == HEARD else "server" for name in NAMES
    }


def test_medians_leave_out_what_was_not_measured() -> None:
    assert medians([{HEARD: 1.0}, {HEARD: 3.0, "ASR": 0.5}, {HEARD: 2.0}]) == {"ASR": 0.5, HEARD: 2.0}
    assert medians([]) == {}


def test_first_sound_of_a_turn_with_a_filler_is_not_the_answers() -> None:
    timer = StageTimer()
    timer.add(LogLine("info", "filler", {"phrase": "one_moment"}))
    assert timer.filled
    assert timer.read({"first_audible": 900.0}) == {}
    timer.restart()
    assert timer.read({"first_audible": 900.0}) == {HEARD: 0.9}
