"""Calls about accounts. Signing in is for browsers: programs have tokens."""

from fleet.client.call import Call, Nothing
from fleet.wire.control.accounts import Account, AccountChange, NewAccount, PasswordReset
from fleet.wire.control.shapes import ListPage


def listing(limit: int = 500) -> Call[ListPage[Account]]:
    """List accounts."""
    return Call("GET", "/accounts", ListPage[Account], {"limit": limit})


def add(wanted: NewAccount) -> Call[Account]:
    """Make an account."""
    return Call("POST", "/accounts", Account, body=wanted)


def change(account: int, changed: AccountChange) -> Call[Account]:
    """Change the role of an account, or disable it."""
    return Call("PATCH", f"/accounts/{account}", Account, body=changed)


def reset_password(account: int, password: PasswordReset) -> Call[Nothing]:
    """Give an account another password."""
    return Call("POST", f"/accounts/{account}:password", Nothing, body=password)


def sign_out(account: int) -> Call[Nothing]:
    """End all sign-ins of an account."""
    return Call("POST", f"/accounts/{account}:sign_out", Nothing)


def remove(account: int) -> Call[Nothing]:
    """Delete an account."""
    return Call("DELETE", f"/accounts/{account}", Nothing)
