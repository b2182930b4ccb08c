import asyncio
import socket

from fleet.workbench.sim.bootstrap.raw_request import ask, request
from fleet.workbench.sim.profiles.profile import find_profile

LOOPBACK = "127.0.0.1"
MAC = "02:00:00:00:00:07"


async def answer_with(reply: bytes, content: bytes) -> tuple[str, bytes]:
    """Return the status that a device sees of a server's reply, and what the server got."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.readexactly(len(content)))
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0)
    async with asyncio.timeout(240), server:
        port = server.sockets[0].getsockname()[1]
        answer = await ask(LOOPBACK, port, content, asyncio.get_running_loop().time())
    return answer.status, got[0]


async def test_the_request_is_sent_as_it_is_and_the_status_read() -> None:
    content = request(MAC, find_profile("P1"), "fleet.example:8000", "/xiaozhi/ota/")
    status, got = await answer_with(b"HTTP/1.1 429 Too Many Requests\r\n\r\n", content)
    assert status == "429"
    assert got == content
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /xiaozhi/ota/ HTTP/1.1\r\nHost: fleet.example:8000\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert MAC.encode() in body


async def test_a_server_that_closes_has_not_answered() -> None:
    status, _ = await answer_with(b"", b"x")
    assert status == "no answer"


async def test_a_port_on_which_nobody_listens_is_named_by_its_error() -> None:
    with socket.socket() as bound:
        bound.bind((LOOPBACK, 0))
        answer = await ask(LOOPBACK, bound.getsockname()[1], b"x", asyncio.get_running_loop().time())
    assert answer.status == "ConnectionRefusedError"
