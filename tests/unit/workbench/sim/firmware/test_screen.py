"""What clears the screen of stock firmware, and what does not."""

from fleet.workbench.sim.firmware.screen import Screen, Shown
from fleet.workbench.sim.records.journal import Journal
from fleet.workbench.sim.runtime.state import State

ALERT = Shown("Error", "sad", "system", "sorry")


def screen() -> Screen:
    made = Screen(Journal(lambda: 0.0), lambda: None)
    made.enter(State.IDLE)
    made.alert(ALERT.status, ALERT.text, ALERT.emotion)
    return made


def test_an_alert_stays_until_something_clears_it() -> None:
    assert screen().shown == ALERT


def test_going_idle_clears_text_and_face() -> None:
    one = screen()
    one.enter(State.IDLE)
    assert one.shown == Shown("idle")


def test_a_goodbye_clears_the_text_also_of_a_device_that_is_idle_already() -> None:
    one = screen()
    one.clear()
    assert one.shown.text == ""


def test_a_new_connection_clears_an_alert_only_while_idle() -> None:
    one = screen()
    one.dismiss(State.LISTENING)
    assert one.shown == ALERT
    one.dismiss(State.IDLE)
    assert one.shown == Shown("idle")


def test_listening_wipes_the_face_and_speaking_leaves_it() -> None:
    one = screen()
    one.face("happy")
    one.enter(State.SPEAKING)
    assert (one.shown.emotion, one.shown.text) == ("happy", "sorry")
    one.enter(State.LISTENING)
    assert (one.shown.emotion, one.shown.text) == ("neutral", "sorry")
