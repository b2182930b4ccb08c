"""Calls about tokens and the audit log."""

from typing import Any

from fleet.client.call import Call, Nothing
from fleet.wire.control.audit import AuditRecord
from fleet.wire.control.shapes import ListPage
from fleet.wire.control.tokens import MadeToken, NewToken, Token


def tokens(limit: int = 500) -> Call[ListPage[Token]]:
    """List tokens, without their secrets."""
    return Call("GET", "/tokens", ListPage[Token], {"limit": limit})


def make_token(wanted: NewToken) -> Call[MadeToken]:
    """Make a token. Its secret is in this answer only."""
    return Call("POST", "/tokens", MadeToken, body=wanted)


def revoke_token(token: int) -> Call[Nothing]:
    """Revoke a token."""
    return Call("DELETE", f"/tokens/{token}", Nothing)


def audit(**wanted: Any) -> Call[ListPage[AuditRecord]]:
    """Read the audit log, the newest first (actor, action, object, since, until, limit)."""
    return Call("GET", "/audit", ListPage[AuditRecord], {name: value for name, value in wanted.items() if value})
