"""Controls: calls that count as done once they were sent, in worker and gateway (docs/protocol/registrar.md).

The model goes on at once. If the answer is an error, the next turn's prompt reports it.
"""

from fleet.core import reports

SENT = "success"
"""The outcome that the model is given."""


def failure_report(tool: str, error: str) -> str:
    """Return the report of a control that failed; `tool` is empty when nobody knows any more which one it was."""
    about = {"tool": tool} if tool else {}
    return reports.write("tool failed", {**about, "error": error})
