import asyncio
from types import SimpleNamespace
from typing import Any, cast

from fleet.ground.loop_budget import FRAME_BYTES, LoopBudget
from fleet.roles.worker.inbound.awaited_answers import AwaitedAnswers
from fleet.roles.worker.pending import PendingCalls
from fleet.wire.messages import ResponseEvent

MAC = "aa:bb:cc:dd:ee:ff"
ANSWER = b'{"type":"mcp","payload":{"jsonrpc":"2.0","id":7,"result":{}}}'


async def test_only_the_answer_to_a_call_that_is_awaited_is_taken() -> None:
    taken: list[str] = []
    parsing = LoopBudget()

    def take(mac: str, answer: ResponseEvent) -> asyncio.Future[bool]:
        taken.append(answer.id)
        return asyncio.get_running_loop().create_future()

    called: set[str] = set()
    calls = SimpleNamespace(take=take, awaited=(set(), called))
    answers = AwaitedAnswers(cast("Any", calls), PendingCalls(None), parsing)
    assert answers.take(MAC, ANSWER) is None and taken == []
    called.add(MAC)
    assert answers.take("another", ANSWER) is None
    assert answers.take(MAC, b'{"type":"hello","version":3}') is None
    assert answers.take(MAC, b"{" * 300) is None and taken == []
    assert answers.take(MAC, ANSWER) is not None and taken == ["7"]

    def fail(mac: str, answer: ResponseEvent) -> None:
        raise RecursionError

    calls.take = fail
    assert answers.take(MAC, ANSWER) is None, "a failure is for the usual way"
    assert not parsing.take_now(FRAME_BYTES), "it is part of what one iteration may parse"
    assert answers.take(MAC, ANSWER.replace(b"{}", b'{"x":"%b"}' % (b"x" * FRAME_BYTES))) is None and taken == ["7"]


async def test_the_answer_to_another_request_is_passed_on_at_once() -> None:
    requests = PendingCalls[ResponseEvent | None](None)
    calls = SimpleNamespace(take=lambda mac, answer: None, awaited=(set(), set()))
    answers = AwaitedAnswers(cast("Any", calls), requests, LoopBudget())
    with requests.register(MAC, 8) as other, requests.register(MAC, 7) as waiting:
        assert answers.take("another", ANSWER) is None
        taken = answers.take(MAC, ANSWER)
        assert taken is not None and taken.done() and not other.done()
        found = waiting.result()
        assert found is not None and (found.id, found.result) == ("7", {})
    assert answers.take(MAC, ANSWER) is None
