import pytest
from pydantic import TypeAdapter, ValidationError

from fleet.wire import mail

ABOUT = {"device": "aa:bb:cc:dd:ee:ff", "session": "s"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mail.EDGE_MAIL, mail.SentenceReady(**ABOUT, turn="t", index=0, text="好")),
        (mail.EDGE_MAIL, mail.ListeningStarted(**ABOUT, mode="auto")),
        (mail.EDGE_MAIL, mail.DeviceReturned(**ABOUT)),
        (mail.EDGE_MAIL, mail.TurnWorking(**ABOUT, turn="t")),
        (mail.SHARD_MAIL, mail.UtteranceHeard(**ABOUT, turn="t", text="x", language="en")),
        (mail.SHARD_MAIL, mail.SessionSilent(**ABOUT, reason="idle")),
    ],
)
def test_mail_survives_the_way(model: TypeAdapter[object], message: object) -> None:
    assert model.validate_json(model.dump_json(message)) == message


def test_fields_of_a_newer_version_are_ignored_and_kinds_are_not() -> None:
    newer = mail.SHARD_MAIL.validate_json('{"kind":"speech_done","device":"d","session":"s","turn":"t","more":1}')
    assert newer == mail.SpeechDone(device="d", session="s", turn="t")
    with pytest.raises(ValidationError):
        mail.SHARD_MAIL.validate_json('{"kind":"unheard_of","device":"d","session":"s"}')
