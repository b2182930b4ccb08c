"""Controls: calls that count as done as soon as they are sent, in worker and gateway (docs/protocol/registrar.md).

The model continues at once. If the answer is an error, the next turn's prompt reports it.
"""

from fleet.core import reports

SENT = "success"
"""The outcome that the model is given."""


def failure_report(tool: str, error: str) -> str:
    """Return the report of a failed control; `tool` is empty when its name is not known any more."""
    about = {"tool": tool} if tool else {}
    return reports.write("tool failed", {**about, "error": error})
