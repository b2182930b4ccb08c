"""The audit log."""

from typing import Any

from fleet.wire.control.shapes import Shape, Time


class AuditRecord(Shape):
    """What somebody changed. `before` and `after` hold only what differs; `request` is the id of the request."""

    id: int
    at: Time
    actor: str
    source: str
    action: str
    object: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    request: str = ""
