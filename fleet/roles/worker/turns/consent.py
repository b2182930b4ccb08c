"""The user's yes in one turn: whether it confirms the call of the turn before, and the question about another call.

The rule is in `fleet.core.consent`. The waiting call is a part of the journal of the turn that asks, written under the
fence before the question is spoken. The next turn takes it over in the step in which it begins, so it is asked once,
and the call has one name under which it runs at most once (docs/adr/0045-ask-first.md).
"""

import logging
from collections.abc import Mapping

from pydantic import JsonValue

from fleet.adapters.redis.sessions.conversations import Begun
from fleet.core.agent import Progress
from fleet.core.consent import Ask, confirms, describe_call, note_unconfirmed, write_question
from fleet.core.ports import Message, ToolCall
from fleet.core.text.phrases import known_language
from fleet.core.tool_gate import ToolGate
from fleet.core.tool_policy import ToolPolicy
from fleet.roles.worker.ownership.shard import Shard
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.turns.speech import AnswerSpeech
from fleet.wire import dialects
from fleet.wire.edge_messages import UtteranceEvent

log = logging.getLogger(__name__)


class TurnConsent:
    """Asks the user, and knows his answer.

    Args:
        resources: Of the worker.
        shard: The device's shard.
        begun: The turn; a call may have waited for it.
        heard: The turn's utterance.
        speech: Of the turn.
    """

    def __init__(
        self, resources: WorkerResources, shard: Shard, begun: Begun, heard: UtteranceEvent, speech: AnswerSpeech
    ) -> None:
        self._resources = resources
        self._shard = shard
        self._session = begun.session
        self._heard = heard
        self._speech = speech
        self._asked = begun.asked
        self._confirmed = begun.asked.confirmed if begun.asked and _confirms(begun.asked, heard) else None
        if begun.asked:
            log.info("call confirmed" if self._confirmed else "call not confirmed", extra={"tool": begun.asked.tool})

    @property
    def note(self) -> str:
        """What the model is told of a call that was not confirmed; empty for nothing."""
        return note_unconfirmed(self._asked) if self._asked and not self._confirmed else ""

    def add_confirmed(self, before: Progress) -> Progress:
        """Return where the turn continues: at its beginning, a confirmed call is to be made."""
        if self._confirmed is None or before.messages or before.said:
            return before
        return Progress((Message("assistant", "", (self._confirmed,)),))

    def gate(self, policy: ToolPolicy) -> ToolGate:
        """Return the gate of the turn's calls."""
        if self._heard.no_dangerous_tools:
            policy = policy.without_dangerous()
        can_ask = bool(self._session.edge) and dialects.find(self._session.dialect).capabilities.audio
        return ToolGate(policy, self._ask if can_ask else None, self._confirmed)

    async def _ask(self, call: ToolCall, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Keep a call for the next turn; return the question, which is spoken in its language.

        Raises:
            Fenced: Another worker owns the shard, or a newer turn has begun.
            Unavailable: Redis is away.
        """
        settings = self._resources.settings
        language = known_language(self._speech.utterance.language, self._heard.language, settings.language)
        what = describe_call(tool, arguments, language)
        ask = Ask(self._heard.turn, self._session.id, tool, call, what)
        await self._resources.asks.keep(self._shard.owner, self._session.device, ask)
        self._speech.set_language(language)
        log.info("user is asked first", extra={"tool": tool})
        return write_question(what, language)


def _confirms(ask: Ask, heard: UtteranceEvent) -> bool:
    follows = "" if heard.typed else heard.heard
    return confirms(ask, heard.session, heard.text, follows, heard.pause_ms / 1000)
