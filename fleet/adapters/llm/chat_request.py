"""A request to a chat endpoint: messages, tools and options in the endpoint's form."""

from collections.abc import Mapping, Sequence
from typing import Any

from fleet.adapters.llm.calls import is_object
from fleet.adapters.llm.echoes import CallEchoes
from fleet.core.ports import LlmOptions, Message, ToolCall, ToolOffer

_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
_LONGEST, _LONGEST_NEW = "max_tokens", "max_completion_tokens"
_USAGE, _USAGE_PART = "stream_options", "include_usage"
_OPTIONAL = frozenset({"temperature", _LONGEST_NEW, "tool_choice", "reasoning_content", _USAGE})
ECHO = "reasoning_content"
"""The field that returns thoughts to the endpoint."""


class RequestWriter:
    """Writes an endpoint's requests, without fields that the endpoint has refused before.

    Args:
        is_openai: OpenAI accepts only `max_completion_tokens`, which other endpoints do not know.
        is_google: Google accepts a tool without arguments only without a schema; llama.cpp only with one.
        usual: The options that a request does not set.
    """

    def __init__(self, *, is_openai: bool, is_google: bool, usual: LlmOptions) -> None:
        self._longest = _LONGEST_NEW if is_openai else _LONGEST
        self._is_google = is_google
        self._usual = usual
        self._refused: set[str] = set()
        self._usage_settled = False
        self.echoes = CallEchoes()

    def write(self, messages: Sequence[Message], tools: Sequence[ToolOffer], options: LlmOptions) -> dict[str, Any]:
        """Return the request's body, without the model's name.

        If the conversation holds calls, the request always lists tools: endpoints refuse it otherwise.
        """
        temperature = self._usual.temperature if options.temperature is None else options.temperature
        longest = self._usual.max_tokens if options.max_tokens is None else options.max_tokens
        chosen = {"temperature": temperature, self._longest: longest}
        body: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        body[_USAGE] = {_USAGE_PART: True}
        body["messages"] = [self._write_message(message) for message in messages]
        shown = tools or _called(messages)
        if shown:
            body["tools"] = [self._write_offer(offer) for offer in shown]
            if not options.may_call or not tools:
                body["tool_choice"] = "none"
        return {name: value for name, value in body.items() if name not in self._refused}

    def adapt(self, body: Mapping[str, Any], faults: Sequence[str]) -> bool:
        """Drop refused fields from all further requests.

        Args:
            body: The refused request.
            faults: Fields that the endpoint's answer names; none if it gives no reason.

        Returns:
            Whether the next request differs, so that a retry makes sense.
        """
        if not faults:
            return self._doubt_usage(body)
        for named in faults:
            fault = _USAGE if named == _USAGE_PART else named
            if fault == _LONGEST and fault in body and self._longest == _LONGEST:
                self._longest = _LONGEST_NEW
                return True
            sent = fault in body or (fault == ECHO and self.echoes.thinks)
            if sent and fault in _OPTIONAL and fault not in self._refused:
                self._refused.add(fault)
                return True
        return False

    def accept(self) -> None:
        """Note that the endpoint has taken a request: a later refusal without a reason is not about token counts."""
        self._usage_settled = True

    def _doubt_usage(self, body: Mapping[str, Any]) -> bool:
        """Do without token counts, the newest of the fields; ask for them again if they were not the reason."""
        if self._usage_settled:
            return False
        if _USAGE in body:
            self._refused.add(_USAGE)
            return True
        self._refused.discard(_USAGE)
        return False

    def _write_message(self, message: Message) -> dict[str, Any]:
        written: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.role == "tool":
            written["tool_call_id"] = message.call_id
        if message.calls:
            written["content"] = message.text or None
            written["tool_calls"] = [self._write_call(call) for call in message.calls]
            if self.echoes.thinks and ECHO not in self._refused:
                echo = self.echoes.of(message.calls[0])
                written[ECHO] = echo.thought if echo else ""
        return written

    def _write_call(self, call: ToolCall) -> dict[str, Any]:
        # Some endpoints answer 500 to a conversation with invalid arguments, even if their own model wrote them.
        arguments = call.arguments if is_object(call.arguments) else "{}"
        written = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
        echo = self.echoes.of(call)
        return {**written, "extra_content": echo.extra} if echo and echo.extra else written

    def _write_offer(self, offer: ToolOffer) -> dict[str, Any]:
        function: dict[str, Any] = {"name": offer.name, "description": offer.description}
        if offer.parameters.get("properties") or not self._is_google:
            function["parameters"] = offer.parameters or _NOTHING
        return {"type": "function", "function": function}


def _called(messages: Sequence[Message]) -> list[ToolOffer]:
    """Return tools without parameters for all calls in the conversation."""
    names = dict.fromkeys(call.name for message in messages for call in message.calls)
    return [ToolOffer(name, name, _NOTHING) for name in names]
