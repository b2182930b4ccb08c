"""The request of OpenAI's chat completions as far as the demo model reads it, checked as strictly as the real one."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from fleet.workbench.demo_llm.results import ToolText
from fleet.workbench.demo_llm.schemas import Scalar, Tool, understood
from fleet.workbench.demo_llm.turn import Choice, Conversation, Done

LONGEST_UTTERANCE = 1000
"""Characters of a user message that are read; nobody says more in one breath."""


class BadRequest(Exception):
    """The request breaks OpenAI's rules; told to the client as status 400.

    Args:
        message: What is wrong.
        param: The part of the request that is wrong.
        code: OpenAI's word for the fault, where it has one.
    """

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


def _joined(value: object) -> object:
    """Join content parts; what is no text (an image) is not understood and left out."""
    if not isinstance(value, list):
        return "" if value is None else value
    texts = [part.get("text") for part in value if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


_Text = Annotated[str, BeforeValidator(_joined)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _CalledFunction(_Model):
    name: str
    arguments: str = ""


class _ToolCall(_Model):
    id: str
    type: Literal["function"] = "function"
    function: _CalledFunction


class _Message(_Model):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: _Text = ""
    tool_calls: tuple[_ToolCall, ...] | None = None
    tool_call_id: str | None = None


class _Function(_Model):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.\-]{1,128}$")]
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None


class _Offer(_Model):
    type: Literal["function"]
    function: _Function


class _NamedFunction(_Model):
    name: str


class _Named(_Model):
    type: Literal["function"]
    function: _NamedFunction


class _StreamOptions(_Model):
    include_usage: bool = False


class CompletionRequest(_Model):
    """One request; fields that only tune a language model (temperature and the like) are accepted and ignored."""

    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[tuple[_Message, ...], Field(min_length=1)]
    tools: tuple[_Offer, ...] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Named | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: int | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    def offered(self) -> tuple[Tool, ...]:
        """Return the offered tools, understood."""
        functions = [offer.function for offer in self.tools or ()]
        return tuple(
            understood(function.name, function.description or "", json.dumps(function.parameters or {}))
            for function in functions
        )

    def choice(self) -> Choice:
        named = self.tool_choice.function.name if isinstance(self.tool_choice, _Named) else ""
        parallel = self.parallel_tool_calls is not False
        return Choice(self.tool_choice != "none", self.tool_choice == "required", named, parallel)

    def conversation(self) -> Conversation:
        """Return what has been said, cut at the last user message."""
        spoken = [at for at, message in enumerate(self.messages) if message.role == "user"]
        if not spoken:
            return Conversation("")
        last = spoken[-1]
        before, after = self.messages[:last], self.messages[last + 1 :]
        answers = [message.content for message in before if message.role == "assistant" and message.content]
        return Conversation(
            utterance=self.messages[last].content.strip()[:LONGEST_UTTERANCE],
            earlier=tuple(message.content[:LONGEST_UTTERANCE] for message in before if message.role == "user"),
            last_answer=answers[-1] if answers else "",
            done=_done(after),
            rounds=sum(bool(message.tool_calls) for message in after),
        )


def parse_request(body: bytes) -> CompletionRequest:
    """Return the request.

    Raises:
        BadRequest: It is no JSON, lacks something, or its tool messages do not answer its tool calls.
    """
    try:
        request = CompletionRequest.model_validate_json(body)
    except ValidationError as error:
        raise _explain(error) from error
    if request.n not in (None, 1):
        raise BadRequest("Only n = 1 is supported.", "n")
    if request.stream_options is not None and not request.stream:
        raise BadRequest("'stream_options' is only allowed when 'stream' is enabled.", "stream_options")
    _check_choice(request)
    _check_answers(request.messages)
    return request


def _explain(error: ValidationError) -> BadRequest:
    fault = error.errors(include_url=False, include_input=False)[0]
    if fault["type"] == "json_invalid":
        return BadRequest("We could not parse the JSON body of your request.")
    param = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "missing":
        return BadRequest(f"Missing required parameter: '{param}'.", param, "missing_required_parameter")
    return BadRequest(f"Invalid value for '{param}': {fault['msg']}.", param, "invalid_value")


def _check_choice(request: CompletionRequest) -> None:
    forced = request.tool_choice == "required" or isinstance(request.tool_choice, _Named)
    if forced and not request.tools:
        raise BadRequest("'tool_choice' is only allowed when 'tools' are specified.", "tool_choice")
    named = request.choice().named
    if named and named not in {offer.function.name for offer in request.tools or ()}:
        raise BadRequest(f"Tool choice '{named}' not found in 'tools' parameter.", "tool_choice")


def _check_answers(messages: Sequence[_Message]) -> None:
    """Hold to OpenAI's rule: calls are answered at once and completely, and nothing else is."""
    open_: set[str] = set()
    for at, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_:
                raise BadRequest(
                    "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
                    f"messages.{at}.tool_call_id",
                )
            open_.discard(message.tool_call_id)
            continue
        if open_:
            raise _unanswered(open_, at)
        open_ = {call.id for call in message.tool_calls or ()}
    if open_:
        raise _unanswered(open_, len(messages))


def _unanswered(ids: set[str], at: int) -> BadRequest:
    return BadRequest(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"Missing: {', '.join(sorted(ids))}.",
        f"messages.{at}",
    )


def _done(messages: Sequence[_Message]) -> tuple[Done, ...]:
    results = {message.tool_call_id: message.content for message in messages if message.role == "tool"}
    calls = [call for message in messages for call in message.tool_calls or ()]
    return tuple(
        Done(call.function.name, _arguments(call.function.arguments), ToolText(results[call.id])) for call in calls
    )


def _arguments(text: str) -> Mapping[str, Scalar]:
    try:
        parsed: JsonValue = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(parsed, dict):
        return {}
    return {name: value for name, value in parsed.items() if isinstance(value, str | int | float)}
