import pytest
from msgspec import ValidationError
from msgspec.json import Decoder, encode

from fleet.wire import edge_messages

ABOUT = {"device": "aa:bb:cc:dd:ee:ff", "session": "s"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (edge_messages.EDGE_COMMANDS, edge_messages.SpeakSentenceCommand(**ABOUT, turn="t", index=0, text="好")),
        (edge_messages.EDGE_COMMANDS, edge_messages.StartListeningCommand(**ABOUT, mode="auto")),
        (edge_messages.EDGE_COMMANDS, edge_messages.DeviceReturnedCommand(**ABOUT)),
        (edge_messages.EDGE_COMMANDS, edge_messages.TurnProgressCommand(**ABOUT, turn="t")),
        (edge_messages.EDGE_EVENTS, edge_messages.UtteranceEvent(**ABOUT, turn="t", text="x", language="en")),
        (edge_messages.EDGE_EVENTS, edge_messages.SessionSilentEvent(**ABOUT, reason="idle")),
    ],
)
def test_messages_survive_the_way(model: Decoder[object], message: object) -> None:
    assert model.decode(encode(message)) == message


def test_fields_of_a_newer_version_are_ignored_and_kinds_are_not() -> None:
    newer = edge_messages.EDGE_EVENTS.decode('{"kind":"speech_done","device":"d","session":"s","turn":"t","more":1}')
    assert newer == edge_messages.AnswerDoneEvent(device="d", session="s", turn="t")
    with pytest.raises(ValidationError):
        edge_messages.EDGE_EVENTS.decode('{"kind":"unheard_of","device":"d","session":"s"}')
