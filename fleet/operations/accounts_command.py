"""`fleet accounts`: accounts of operators for the console, over control. Passwords are never arguments."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from fleet.client import accounts
from fleet.ground.errors import ConfigError
from fleet.ground.settings import Settings
from fleet.ground.terminal import visible
from fleet.operations.connect import operation
from fleet.operations.control_access import open_control
from fleet.operations.inputs import checked, read_secret
from fleet.operations.json_output import AsJson, print_json, print_result
from fleet.operations.listing import print_list
from fleet.operations.named_objects import find_account
from fleet.wire.control.accounts import Account, AccountChange, NewAccount, PasswordReset

app = typer.Typer(
    help="Accounts of operators: list, new, role, disable, enable, password, sign-out, remove.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="Name of the account.")]
RoleName = Annotated[str, typer.Argument(help="owner, operator or viewer.")]
PasswordFile = Annotated[
    Path | None,
    typer.Option(help="File with the password; - is the standard input. Without it a terminal asks."),
]
_COLUMNS = ("name", "role", "disabled", "created", "last_sign_in")


@app.command("list")
@operation
async def list_accounts(settings: Settings, as_json: AsJson = False) -> None:
    """List the accounts."""
    async with open_control(settings) as control:
        found = [one async for page in control.pages(accounts.listing()) for one in page.items]
    if as_json:
        print_json("accounts", found)
    else:
        rows = [(one.name, one.role, str(one.disabled).lower(), one.created, one.last_sign_in) for one in found]
        print_list("accounts", _COLUMNS, rows, as_json=False)


@app.command()
@operation
async def new(
    settings: Settings, name: Name, role: RoleName, password_file: PasswordFile = None, as_json: AsJson = False
) -> None:
    """Make an account. The first one should be an owner."""
    wanted = checked(NewAccount, {"name": name, "role": role, "password": _password(password_file)})
    async with open_control(settings) as control:
        made = await control.send(accounts.add(wanted))
    _report(made, f"is made, with the role {made.role}", as_json=as_json)


@app.command("role")
@operation
async def give_role(settings: Settings, name: Name, role: RoleName, as_json: AsJson = False) -> None:
    """Give an account another role; all its sign-ins end."""
    await _change(settings, name, {"role": role}, f"has the role {visible(role)}", as_json=as_json)


@app.command()
@operation
async def disable(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Let an account sign in no more; all its sign-ins end."""
    await _change(settings, name, {"disabled": True}, "is disabled", as_json=as_json)


@app.command()
@operation
async def enable(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Let an account sign in again."""
    await _change(settings, name, {"disabled": False}, "is enabled", as_json=as_json)


@app.command()
@operation
async def password(settings: Settings, name: Name, password_file: PasswordFile = None, as_json: AsJson = False) -> None:
    """Give an account another password; all its sign-ins end. On the machine of control this needs no account."""
    wanted = checked(PasswordReset, {"password": _password(password_file)})
    async with open_control(settings) as control:
        found = await find_account(control, name)
        await control.send(accounts.reset_password(found.id, wanted))
    _report(found, "has another password", as_json=as_json)


@app.command("sign-out")
@operation
async def sign_out(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """End all sign-ins of an account."""
    async with open_control(settings) as control:
        found = await find_account(control, name)
        await control.send(accounts.sign_out(found.id))
    _report(found, "is signed out", as_json=as_json)


@app.command()
@operation
async def remove(settings: Settings, name: Name, as_json: AsJson = False) -> None:
    """Delete an account, and end its sign-ins. Tokens that it made stay."""
    async with open_control(settings) as control:
        found = await find_account(control, name)
        await control.send(accounts.remove(found.id))
    _report(found, "is deleted", as_json=as_json)


async def _change(settings: Settings, name: str, changed: dict[str, Any], text: str, *, as_json: bool) -> None:
    wanted = checked(AccountChange, changed)
    async with open_control(settings) as control:
        found = await find_account(control, name)
        _report(await control.send(accounts.change(found.id, wanted)), text, as_json=as_json)


def _report(account: Account, text: str, *, as_json: bool) -> None:
    print_result("accounts", [account.model_dump(mode="json")], f"{visible(account.name)} {text}", as_json=as_json)


def _password(file: Path | None) -> str:
    if file is not None and not (str(file) == "-" and sys.stdin.isatty()):
        return read_secret(file)
    if not sys.stdin.isatty():
        raise ConfigError("name a file with the password: --password-file")
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
