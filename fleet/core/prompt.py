"""The system prompt of a turn, for devices and for clients of the gateway."""

from datetime import UTC, datetime, timedelta

from fleet.core.situation import SITUATION_RULE

DEVICE_PROMPT = (
    "You are the voice assistant of a small device with a loudspeaker. Answer in the language of the user, in one to "
    "three short spoken sentences, without Markdown, lists or emoji, except that the answer may begin with one emoji "
    "that shows your mood. Use the tools when the user wants the device to do or to tell something; never claim to "
    "have done what no tool did. When a tool's outcome is unknown, say that it may have happened."
)
"""Instructions for voice devices where the operator has set none."""
CLIENT_PROMPT = (
    "You are a voice assistant; what you write is read aloud. Answer in the language of the user, briefly and clearly, "
    "in natural spoken sentences. Write no emoji, no decorative symbols such as ★ or ◆, no Markdown and no lists. Be "
    "accurate, and say so when you are not sure. Use the tools to find out or to do what the user asks for, and never "
    "claim to have done what no tool did."
)
"""Instructions for clients of the gateway where the operator has set none."""


def write_prompt(instructions: str, *, persona: str = "", facts: str = "") -> str:
    """Return the system prompt, which stays the same from turn to turn (`fleet.core.situation`).

    Args:
        instructions: The operator's, or a default above.
        persona: The sentences about language and role; empty for the usual ones.
        facts: What is known from earlier conversations (`fleet.core.memory`); empty for nothing.
    """
    return "\n".join(part for part in (instructions, SITUATION_RULE, persona, facts) if part)


def local_now(offset: int) -> datetime:
    """Return the time where the user is, `offset` minutes east of UTC."""
    return datetime.now(UTC) + timedelta(minutes=offset)
