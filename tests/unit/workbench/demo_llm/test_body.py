import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from fleet.workbench.demo_llm.body import read_body


def request(*pieces: bytes, broken_off: bool = False) -> Request:
    last = {"type": "http.disconnect"} if broken_off else {"type": "http.request", "body": b"", "more_body": False}
    coming = iter([*({"type": "http.request", "body": piece, "more_body": True} for piece in pieces), last])

    async def receive() -> Message:
        return next(coming)

    return Request({"type": "http", "method": "POST", "headers": []}, receive)


async def test_a_body_of_the_limit_is_read_whole() -> None:
    assert await read_body(request(b"ab", b"c"), 3) == b"abc"


@pytest.mark.parametrize(
    ("pieces", "broken_off", "status"), [((b"ab", b"cd", b"never read"), False, 413), ((b"ab",), True, 400)]
)
async def test_a_body_too_long_or_broken_off_is_refused(
    pieces: tuple[bytes, ...], broken_off: bool, status: int
) -> None:
    with pytest.raises(HTTPException) as refused:
        await read_body(request(*pieces, broken_off=broken_off), 3)
    assert refused.value.status_code == status
