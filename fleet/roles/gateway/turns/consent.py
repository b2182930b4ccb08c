"""The yes of a gateway client's user: the next text of the same session, by the rule of `fleet.core.consent`.

The waiting call belongs to the connection, as its turns do: it ends with it, and then nothing was called.
"""

import logging
import re
import secrets
from collections.abc import Mapping

from pydantic import JsonValue

from fleet.core.agent import Progress
from fleet.core.consent import Ask, confirms, describe_call, note_unconfirmed, write_question
from fleet.core.ports import Message, ToolCall
from fleet.core.text.phrases import known_language
from fleet.core.tool_gate import ToolGate
from fleet.core.tool_policy import ToolPolicy

log = logging.getLogger(__name__)

_CHINESE = re.compile("[\u3400-\u9fff]")


class ClientConsent:
    """The call of one connection that waits for its next text. Times are on the loop's clock."""

    def __init__(self) -> None:
        self._waiting: Ask | None = None
        self._asked_at = 0.0

    def keep(self, ask: Ask) -> None:
        """Keep a call until the next text."""
        self._waiting = ask

    def note_sent(self, now: float) -> None:
        """Note that the question was sent: an earlier text is no answer to it."""
        self._asked_at = now

    def begin(self, session: str, text: str, at: float) -> "TextConsent":
        """Begin a turn; a waiting call waits no longer.

        Args:
            session: Of the text.
            text: What the user wrote.
            at: When it came.
        """
        ask, self._waiting = self._waiting, None
        confirmed = ask is not None and confirms(ask, session, text, ask.turn, at - self._asked_at)
        if ask is not None:
            log.info("call confirmed" if confirmed else "call not confirmed", extra={"tool": ask.tool})
        return TextConsent(self, ask, session, text, confirmed=confirmed)


class TextConsent:
    """The yes in one turn.

    Args:
        client: Keeps the call that the next text may confirm.
        asked: The call that waited for this text, if one did.
        session: Of the turn.
        text: Of the turn.
        confirmed: Whether the text is a yes to `asked`.
    """

    def __init__(self, client: ClientConsent, asked: Ask | None, session: str, text: str, *, confirmed: bool) -> None:
        self._client = client
        self._asked = asked
        self._session = session
        self._text = text
        self._call = asked.confirmed if asked and confirmed else None
        self.language = ""
        """The language in which the client is answered, if that is known."""

    @property
    def note(self) -> str:
        """What the model is told of a call that was not confirmed; empty for nothing."""
        return note_unconfirmed(self._asked) if self._asked and not self._call else ""

    @property
    def before(self) -> Progress:
        """Where the turn begins: with the confirmed call, if there is one."""
        return Progress((Message("assistant", "", (self._call,)),)) if self._call else Progress()

    def gate(self, policy: ToolPolicy) -> ToolGate:
        """Return the gate of the turn's calls."""
        return ToolGate(policy, self._ask, self._call)

    async def _ask(self, call: ToolCall, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        language = known_language(self.language, "zh" if _CHINESE.search(self._text) else "en")
        what = describe_call(tool, arguments, language)
        self._client.keep(Ask(secrets.token_hex(8), self._session, tool, call, what))
        log.info("user is asked first", extra={"tool": tool})
        return write_question(what, language)
