"""A chat model over real HTTP that knows what to say to which words, so that many conversations can share it.

What it says depends on a request's last user message and on how often it has asked for tools since; a request that is
repeated is answered as before unless the test says otherwise.
"""

import contextlib
import json
import re
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import uvicorn

from fleet.core.situation import words_of
from tests.support.openai_server import Answer, OpenAiServer, Request, asked, refused, spoken

Body = dict[str, Any]
Said = Answer | Callable[[Body], Answer]
Step = Said | Sequence[Said]
"""One message of the model; of a sequence each try of it gets the next, and further ones the last."""


def asks(*calls: tuple[str, Mapping[str, Any] | str], text: str = "") -> Callable[[Body], Answer]:
    """Ask for calls of tools by their own names, in pieces as models write them; text is no JSON and stays as it is."""

    def say(body: Body) -> Answer:
        pieces: list[dict[str, Any]] = []
        for index, (name, arguments) in enumerate(calls):
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            half = len(written) // 2
            begin = {"name": offered_name(body, name), "arguments": written[:half]}
            pieces.append({"index": index, "id": f"asked_{index}_{name}", "type": "function", "function": begin})
            pieces.append({"index": index, "function": {"arguments": written[half:]}})
        return asked(*pieces, text=text)

    return say


def offered_name(body: Body, name: str) -> str:
    """Return the name under which a tool is offered in a request; its own where it is not."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    names = offers(body)
    return next((one for one in (name, plain) if one in names), name)


def offers(body: Body) -> dict[str, Body]:
    """Return the tools that a request offers, by the names that the model knows."""
    return {tool["function"]["name"]: tool["function"] for tool in body.get("tools", [])}


def roles(body: Body, *wanted: str) -> list[str]:
    """Return the texts of a request's messages that have these roles; of the user's, the words."""
    return [words_of(str(message.get("content") or "")) for message in body["messages"] if message["role"] in wanted]


class ScriptedLlm(OpenAiServer):
    """The server while it runs."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.others: Answer = refused(404, "not_scripted")
        """What every request gets that is not for a chat, such as for the list of models."""
        self._scripts: dict[str, list[deque[Said]]] = {}
        self._heard: list[tuple[Body, Request]] = []
        self._current: Request | None = None

    def when(self, words: str, *steps: Step) -> None:
        """Say these messages, one after each round of tools, to a user message that contains the words."""
        self._scripts[words] = [deque(step) if isinstance(step, Sequence) else deque([step]) for step in steps]

    def asked(self, words: str) -> list[Body]:
        """Return the bodies of the requests whose last user message contains the words."""
        return [body for body, _ in list(self._heard) if words in _question(body)]

    def heard(self, words: str) -> list[Request]:
        """Return those requests."""
        return [request for body, request in list(self._heard) if words in _question(body)]

    async def _note(self, *arguments: Any) -> Request:
        self._current = await super()._note(*arguments)
        return self._current

    def _next(self, path: str) -> Answer:
        # Called in the same step in which `_note` has returned.
        assert self._current
        if not path.endswith("/chat/completions"):
            return self.others
        if not self._current.body:
            return refused(400, "the_client_left")
        body = self._current.json
        self._heard.append((body, self._current))
        said = self._choose(body)
        return said if isinstance(said, Answer) else said(body)

    def _choose(self, body: Body) -> Said:
        question = _question(body)
        for words, steps in self._scripts.items():
            if words in question:
                step = steps[min(_rounds(body), len(steps) - 1)]
                return step.popleft() if len(step) > 1 else step[0]
        return spoken(f"我听到了：{question}。")


def _question(body: Body) -> str:
    return next((text for text in reversed(roles(body, "user"))), "")


def _rounds(body: Body) -> int:
    """Count the model's requests for tools since the last user message."""
    rounds = 0
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            break
        rounds += bool(message.get("tool_calls"))
    return rounds


@contextlib.contextmanager
def run_scripted_llm() -> Iterator[ScriptedLlm]:
    """Run a model on a free loopback port until the block ends."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        app = ScriptedLlm(listener.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        listener.listen(256)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="scripted model")
        thread.start()
        try:
            yield app
        finally:
            server.should_exit = True
            thread.join(240)
            assert not thread.is_alive()
