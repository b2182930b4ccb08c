"""The scopes are a part of the API: tokens that exist keep what they may do."""

from fleet.core.permissions import EVERY_SCOPE, OPERATOR, OWNER, ROLES, SCOPES, VIEWER

NAMES = (
    *("devices:read", "devices:write", "devices:command", "devices:dangerous", "groups:write"),
    *("agents:read", "agents:write", "providers:write", "jobs:read", "jobs:write"),
    *("conversations:read", "conversations:write", "memory:read", "memory:write", "events:read"),
    *("alerts:read", "alerts:write", "usage:read", "audit:read", "tokens:write", "accounts:write", "system:read"),
)


def test_scopes_keep_their_names() -> None:
    assert SCOPES == NAMES


def test_an_owner_may_do_all_and_an_operator_hands_out_no_rights() -> None:
    assert ROLES[OWNER] == EVERY_SCOPE == set(NAMES)
    assert ROLES[OWNER] - ROLES[OPERATOR] == {"accounts:write", "tokens:write", "providers:write"}


def test_a_viewer_changes_nothing_and_sees_nothing_of_what_people_said() -> None:
    assert ROLES[VIEWER] == {
        *("devices:read", "agents:read", "jobs:read", "alerts:read", "events:read", "usage:read", "system:read"),
    }
