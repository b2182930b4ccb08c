import pytest
from pydantic import JsonValue

from fleet.wire import jsonrpc
from fleet.wire.messages import IgnoredEvent, MalformedEvent, NotificationEvent, ResponseEvent


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({"message": "Unknown tool: x"}, "Unknown tool: x"),
        ({"code": -32603, "message": "x"}, "x"),
        ({"code": {}, "message": "x"}, "x"),
        ("x", "x"),
        ({"message": {"why": 1}}, '{"why": 1}'),
        ({"message": 5}, "5"),
        (["x"], '["x"]'),
        (5, "5"),
    ],
)
def test_errors_of_all_shapes_have_a_text(error: JsonValue, text: str) -> None:
    assert jsonrpc.receive({"id": 1, "error": error}) == ResponseEvent("1", error=text)


@pytest.mark.parametrize("error", [{}, {"message": ""}, {"message": " "}, {"message": None}, True, "", []])
def test_an_error_without_a_text_is_an_error(error: JsonValue) -> None:
    answer = jsonrpc.receive({"id": 1, "error": error})
    assert isinstance(answer, ResponseEvent)
    assert answer.error == "the device reported an error without a text"


@pytest.mark.parametrize("error", [None, False])
def test_an_error_that_is_none_leaves_the_result(error: JsonValue) -> None:
    assert jsonrpc.receive({"id": 1, "error": error, "result": [2]}) == ResponseEvent("1", [2])


@pytest.mark.parametrize(("number", "name"), [(7, "7"), (7.0, "7"), ("7", "7"), (7.5, "7.5"), ("x" * 99, "x" * 32)])
def test_ids_come_back_as_numbers_or_texts(number: JsonValue, name: str) -> None:
    assert jsonrpc.receive({"id": number, "result": None}) == ResponseEvent(name)


@pytest.mark.parametrize("payload", [None, 5, [], {}, {"id": True}, {"id": []}, {"id": {}}, {"method": 5}])
def test_what_is_no_message_is_a_value(payload: JsonValue) -> None:
    assert isinstance(jsonrpc.receive(payload), MalformedEvent)


@pytest.mark.parametrize(
    "payload", [{"method": "notifications/x", "id": 5}, {"method": "notifications/x", "id": None}, {"method": "x"}]
)
def test_what_wants_no_answer_is_a_notice(payload: JsonValue) -> None:
    assert isinstance(jsonrpc.receive(payload), NotificationEvent)


def test_requests_of_a_device_are_ignored() -> None:
    assert isinstance(jsonrpc.receive({"method": "ping", "id": 5}), IgnoredEvent)


def test_an_answer_that_is_nested_too_deeply_is_malformed() -> None:
    deep: JsonValue = 1
    for _ in range(500):
        deep = [deep]
    assert isinstance(jsonrpc.receive({"jsonrpc": "2.0", "id": 7, "result": deep}), MalformedEvent)
