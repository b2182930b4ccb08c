from fleet.workbench.conformance.steering.records import Asked, HeardAudio, Records, Spoken
from fleet.workbench.conformance.steering.voice import Marked

MEGABYTE = 1024 * 1024


def heard(at: float, size: int, *marks: int) -> HeardAudio:
    return HeardAudio(at, 1.0, [Marked(mark, 0.0, 1.0) for mark in marks], bytes(size))


async def test_audio_with_two_marks_is_recorded_once_for_each() -> None:
    records = Records()
    audio = heard(1.0, 10, 100, 101, 100)
    records.note_heard(audio)
    assert list(records.heard[100]) == [audio] == list(records.heard[101])
    assert records.counts["asr"] == 1


async def test_old_audio_makes_room_but_its_marks_stay() -> None:
    records = Records()
    for number in range(5):
        records.note_heard(heard(number, 20 * MEGABYTE, 100 + number))
    kept = [len(records.heard[100 + number][0].pcm) // MEGABYTE for number in range(5)]
    assert kept == [0, 0, 20, 20, 20]
    assert records.heard[100][0].marks == [Marked(100, 0.0, 1.0)]


async def test_the_newest_of_each_kind_stay() -> None:
    records = Records()
    for number in range(300):
        records.note_heard(heard(number, 0, 100))
        records.note_asked(100, Asked(number, (), ()))
        records.note_spoken(100, Spoken(number, "a"))
        records.note_stray("chat", "x" * 1000)
    assert [len(records.heard[100]), len(records.asked[100]), len(records.spoken[100])] == [32, 64, 256]
    assert records.heard[100][-1].at == records.asked[100][-1].at == records.spoken[100][-1].at == 299
    assert len(records.strays) == 100
    assert len(records.strays[0].detail) == 200
    assert records.counts["stray chat"] == 300


async def test_a_mark_that_does_not_exist_is_only_counted() -> None:
    records = Records()
    records.note_asked(999, Asked(0.0, (), ()))
    records.note_asked(None, Asked(0.0, (), ()))
    records.note_spoken(None, Spoken(0.0, "a"))
    assert records.counts == {"chat": 2, "voice": 1}


async def test_clearing_a_mark_leaves_the_others() -> None:
    records = Records()
    records.note_heard(heard(1.0, 10, 100, 101))
    records.note_asked(100, Asked(0.0, (), ()))
    records.note_spoken(100, Spoken(0.0, "a"))
    records.clear(100)
    assert not records.heard[100] and not records.asked[100] and not records.spoken[100]
    assert records.heard[101]
