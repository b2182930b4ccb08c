"""How errors of model endpoints are read."""

import json

import httpx2
import openai
from hypothesis import given
from hypothesis import strategies as some

from fleet.adapters.error_answer import ErrorAnswer

VALUES = some.none() | some.booleans() | some.integers() | some.text(max_size=9) | some.lists(some.none(), max_size=1)


@given(some.dictionaries(some.sampled_from(["message", "code", "param", "type"]), VALUES) | VALUES)
def test_an_error_is_read_as_the_openai_library_reads_it(body: object) -> None:
    response = httpx2.Response(429, request=httpx2.Request("POST", "http://host/v1"))
    expected = openai.APIStatusError("", response=response, body=body)
    for content in (body, {"error": body}):
        found = ErrorAnswer.of(response, json.dumps(content).encode())
        assert found.code == (expected.code or "")
        assert found.param == (expected.param if isinstance(expected.param, str) else "")
        message = body.get("message") if isinstance(body, dict) else None
        assert found.message == str(message or 429)
