import secrets

from fleet.wire import echo, packet
from tests.support.every import for_every

KEY = bytes(range(16))
TOKEN = b"12345678"


def test_an_answer_brings_the_token_back_and_is_no_longer_than_the_question() -> None:
    question = echo.ask(KEY, 7, 1, TOKEN)
    header = packet.parse(question)
    assert header is not None and header.flags == echo.FLAGS and header.ssrc == 7
    answer = echo.answer(KEY, question)
    assert answer is not None and len(answer) == len(question)
    assert echo.read(KEY, answer) == TOKEN
    assert answer[:2] == bytes((1, echo.FLAGS | packet.DOWNLINK_FLAGS))
    assert answer[16:] != question[16:], "no keystream is used twice"


@for_every("bit", range(8 * 24))
def test_a_question_that_was_changed_on_the_way_has_no_answer(bit: int) -> None:
    question = bytearray(echo.ask(KEY, 7, 1, TOKEN))
    question[bit // 8] ^= 1 << bit % 8
    assert echo.answer(KEY, bytes(question)) is None


def test_without_the_key_nobody_is_answered() -> None:
    assert echo.answer(KEY, echo.ask(secrets.token_bytes(16), 7, 1, TOKEN)) is None
    assert echo.answer(KEY, echo.ask(KEY, 7, 1, TOKEN)[:-1]) is None
    assert echo.answer(KEY, echo.ask(KEY, 7, 1, TOKEN + b"x")) is None


def test_only_an_answer_is_read_as_one() -> None:
    question = echo.ask(KEY, 7, 1, TOKEN)
    assert echo.read(KEY, question) is None
    assert echo.read(KEY, b"") is None
    answer = echo.answer(KEY, question) or b""
    assert echo.read(secrets.token_bytes(16), answer) is None
