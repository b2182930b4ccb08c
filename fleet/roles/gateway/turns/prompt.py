"""What the gateway's model is told about itself."""

from datetime import datetime

DEFAULT_PROMPT = (
    "You are a voice assistant; what you write is read aloud. Answer in the language of the user, briefly and clearly, "
    "in natural spoken sentences. Write no emoji, no decorative symbols such as ★ or ◆, no Markdown and no lists. Be "
    "accurate, and say so when you are not sure. Use the tools to find out or to do what the user asks for, and never "
    "claim to have done what no tool did."
)


def write_prompt(own: str | None, persona: str, now: datetime) -> str:
    """Return the system prompt of a turn.

    Args:
        own: The operator's, in place of ours.
        persona: What is said of language and role; empty for the usual ones.
        now: The time where the client is.
    """
    parts = (own or DEFAULT_PROMPT, persona, f"It is {now:%A, %Y-%m-%d %H:%M}.")
    return "\n".join(part for part in parts if part)
