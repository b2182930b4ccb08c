"""Texts that devices are to speak."""

from fleet.core.text.speakable import speakable
from fleet.roles.control.problems import Problem


def check_spoken(text: str) -> None:
    """Refuse a text of which nothing can be heard: emoji, marks and invisible characters alone.

    Raises:
        Problem: It is one (422).
    """
    if not speakable(text):
        message = "there is nothing in it that can be spoken"
        raise Problem(422, "invalid", f"body.text: {message}", errors=[{"at": "body.text", "message": message}])
