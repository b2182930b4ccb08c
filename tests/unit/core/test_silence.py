from fleet.core.silence import UNUSED_SECONDS, SilenceTimeout


def test_a_session_that_nobody_uses_ends_early() -> None:
    one = SilenceTimeout(100.0)
    assert one.reason_to_end(100 + UNUSED_SECONDS - 0.1, 120) is None
    assert one.reason_to_end(100 + UNUSED_SECONDS, 120) == "unused"


def test_a_session_that_was_used_may_be_silent_for_longer() -> None:
    one = SilenceTimeout(100.0)
    one.used = True
    assert one.reason_to_end(219.9, 120) is None
    assert one.reason_to_end(220.0, 120) == "idle"


def test_each_silence_is_reported_once() -> None:
    one = SilenceTimeout(100.0)
    one.used = True
    assert one.reason_to_end(230.0, 120) == "idle"
    assert one.reason_to_end(231.0, 120) is None
    one.reset(240.0)
    assert one.reason_to_end(359.9, 120) is None and one.reason_to_end(360.0, 120) == "idle"
