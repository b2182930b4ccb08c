"""The request of OpenAI's chat completions as far as the demo model reads it, checked as strictly as the real one."""

import json
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from fleet.core.situation import words_of
from fleet.workbench.demo_llm.results import ToolResult
from fleet.workbench.demo_llm.schemas import Tool, understand
from fleet.workbench.demo_llm.turn import Call, Conversation

LONGEST_UTTERANCE = 1000
"""Characters of a user message that are read; nobody says more in one breath."""
MOST_ROUNDS = 4
"""Rounds of tool calls after which the model answers with what it has."""


class BadRequest(Exception):
    """The request breaks OpenAI's rules; told to the client as status 400.

    Args:
        message: What is wrong.
        param: The part of the request that is wrong.
        code: OpenAI's word for the fault, where it has one.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param, self.code = param, code


def _joined(value: object) -> object:
    """Join content parts; what is no text (an image) is not understood and left out."""
    if not isinstance(value, list):
        return "" if value is None else value
    texts = [part.get("text") for part in value if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Called(_Model):
    name: str
    arguments: str = ""


class _ToolCall(_Model):
    id: str
    function: _Called


class _Message(_Model):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Annotated[str, BeforeValidator(_joined)] = ""
    tool_calls: tuple[_ToolCall, ...] | None = None
    tool_call_id: str | None = None


class _Function(_Model):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.\-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class _Offer(_Model):
    type: Literal["function"]
    function: _Function


class _StreamOptions(_Model):
    include_usage: bool = False


class CompletionRequest(_Model):
    """One request; fields that only tune a language model (temperature and the like) are accepted and ignored."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[tuple[_Message, ...], Field(min_length=1)]
    tools: tuple[_Offer, ...] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: Literal[1] | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def offered(self) -> tuple[Tool, ...]:
        """Return the offered tools, understood."""
        offers = (offer.function for offer in self.tools or ())
        return tuple(understand(one.name, one.description or "", json.dumps(one.parameters or {})) for one in offers)

    def conversation(self) -> Conversation:
        """Return what has been said, cut at the last user message."""
        spoken = [at for at, message in enumerate(self.messages) if message.role == "user"]
        if not spoken:
            return Conversation("")
        before, after = self.messages[: spoken[-1]], self.messages[spoken[-1] + 1 :]
        answers = [message.content for message in before if message.role == "assistant" and message.content]
        results = {message.tool_call_id: message.content for message in after if message.role == "tool"}
        calls = [call for message in after for call in message.tool_calls or ()]
        return Conversation(
            words_of(self.messages[spoken[-1]].content).strip()[:LONGEST_UTTERANCE],
            tuple(message.content[:LONGEST_UTTERANCE] for message in before if message.role == "user"),
            answers[-1] if answers else "",
            tuple((_call(call.function), ToolResult(results[call.id])) for call in calls),
            self.tool_choice != "none" and sum(bool(message.tool_calls) for message in after) < MOST_ROUNDS,
        )


def parse_request(body: bytes) -> CompletionRequest:
    """Return the request.

    Raises:
        BadRequest: It is no JSON, lacks something, or its tool messages do not answer its tool calls.
    """
    try:
        request = CompletionRequest.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        param = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "json_invalid":
            raise BadRequest("We could not parse the JSON body of your request.") from error
        if fault["type"] == "missing":
            raise BadRequest(f"Missing required parameter: '{param}'.", param, "missing_required_parameter") from error
        raise BadRequest(f"Invalid value for '{param}': {fault['msg']}.", param, "invalid_value") from error
    _check_answers(request.messages)
    return request


def _check_answers(messages: Sequence[_Message]) -> None:
    """Hold to OpenAI's rule: calls are answered at once and completely, and nothing else is."""
    open_: set[str] = set()
    for at, message in enumerate((*messages, None)):
        if message and message.role == "tool":
            if message.tool_call_id not in open_:
                wrong = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
                raise BadRequest(wrong, f"messages.{at}.tool_call_id")
            open_.discard(message.tool_call_id)
        elif open_:
            rule = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            raise BadRequest(f"{rule} 'tool_call_id'. Missing: {', '.join(sorted(open_))}.", f"messages.{at}")
        else:
            open_ = {call.id for call in message.tool_calls or ()} if message else set()


def _call(called: _Called) -> Call:
    parsed = ToolResult(called.arguments).data
    items = parsed.items() if isinstance(parsed, dict) else ()
    return Call(called.name, {name: value for name, value in items if isinstance(value, str | int | float)})
