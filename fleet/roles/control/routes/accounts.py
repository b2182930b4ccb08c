"""`/v1/accounts`: the accounts of operators."""

from typing import Annotated, Any, cast

from fastapi import Path, Request, Response

from fleet.adapters.sql.account_rows import AccountRow, AccountRows
from fleet.adapters.sql.token_rows import NameTaken
from fleet.core.permissions import ACCOUNTS_WRITE, OWNER, ROLES
from fleet.roles.control.access import Principal, Who, milliseconds
from fleet.roles.control.changes import OpenChange
from fleet.roles.control.cursors import Cursor, Limit
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.routing import Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.accounts import Account, AccountChange, NewAccount, PasswordReset, Role
from fleet.wire.control.shapes import ListPage, time_of, time_or_none

AccountId = Annotated[int, Path(ge=1, le=2**53)]
MOST_ACCOUNTS = 1_000
"""Of one tenant."""


class AccountsRoutes:
    """Lists, makes, changes and deletes accounts, and ends their sign-ins."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._rows = services, AccountRows(services.database)
        routes.add("GET /accounts", self.list_accounts, ACCOUNTS_WRITE)
        routes.add("POST /accounts", self.make, ACCOUNTS_WRITE, model=Account, status=201, secret=True)
        routes.add("GET /accounts/{account}", self.read, ACCOUNTS_WRITE)
        routes.add("PATCH /accounts/{account}", self.change, ACCOUNTS_WRITE, model=Account)
        routes.add("DELETE /accounts/{account}", self.remove, ACCOUNTS_WRITE, status=204)
        routes.add("POST /accounts/{account}:password", self.reset_password, ACCOUNTS_WRITE, status=204, secret=True)
        routes.add("POST /accounts/{account}:sign_out", self.sign_out, ACCOUNTS_WRITE, status=204)

    async def list_accounts(self, who: Who, limit: Limit = 50, cursor: Cursor = "") -> ListPage[Account]:
        """Return the accounts."""
        place = self._services.cursors.read(who, "accounts", cursor)
        found = await self._rows.page(who.tenant, int(str(place[0])) if place else 0, limit + 1)
        more = self._services.cursors.write(who, "accounts", [found[limit - 1].id]) if len(found) > limit else None
        return ListPage(items=[_shown(one) for one in found[:limit]], next=more)

    async def read(self, who: Who, account: AccountId) -> Account:
        """Return an account."""
        found = await self._rows.read(who.tenant, account)
        if found is None:
            raise not_found("account")
        return _shown(found)

    async def make(self, who: Who, wanted: NewAccount, request: Request) -> Response:
        """Make an account, whose role allows at most what its maker may."""
        _check_role(who, wanted.role)
        password = await self._services.passwords.hash(wanted.password)
        async with self._services.changes.begin(request) as change:
            rows = AccountRows(change.sql)
            if await rows.count(who.tenant) >= MOST_ACCOUNTS:
                raise Problem(409, "too-many-accounts", f"a tenant has at most {MOST_ACCOUNTS} accounts")
            try:
                row = await rows.add(who.tenant, wanted.name, wanted.role, password, milliseconds())
            except NameTaken as error:
                raise Problem(409, "name-taken", str(error)) from error
            await change.audit("account.create", _name(row), after=_values(row))
            return change.answer(_shown(row), 201, headers={"Location": f"/v1/accounts/{row.id}"})

    async def change(self, who: Who, account: AccountId, body: AccountChange, request: Request) -> Response:
        """Change the role of an account, or disable it. All its sign-ins end."""
        values = body.model_dump(exclude_none=True)
        async with self._services.changes.begin(request) as change:
            before = await self._theirs(change, who, account)
            if body.role is not None:
                _check_role(who, body.role)
            if before.role == OWNER and (values.get("role", OWNER) != OWNER or body.disabled):
                await _keep_an_owner(change, before)
            row = await AccountRows(change.sql).change(account, **values) if values else before
            await change.audit("account.change", _name(row), before=_values(before), after=_values(row))
            answer = change.answer(_shown(row))
        await self._services.end_sign_ins(account)
        return answer

    async def remove(self, who: Who, account: AccountId, request: Request) -> Response:
        """Delete an account, and end its sign-ins. Tokens that it made stay."""
        async with self._services.changes.begin(request) as change:
            row = await self._theirs(change, who, account)
            if row.role == OWNER:
                await _keep_an_owner(change, row)
            await AccountRows(change.sql).remove(account)
            await change.audit("account.delete", _name(row), before=_values(row))
            answer = change.answer(status=204)
        await self._services.end_sign_ins(account)
        return answer

    async def reset_password(self, who: Who, account: AccountId, body: PasswordReset, request: Request) -> Response:
        """Give an account another password, and end its sign-ins."""
        return await self._end(request, who, account, "account.reset_password", body.password)

    async def sign_out(self, who: Who, account: AccountId, request: Request) -> Response:
        """End all sign-ins of an account."""
        return await self._end(request, who, account, "account.sign_out")

    async def _end(self, request: Request, who: Principal, account: int, action: str, password: str = "") -> Response:
        values = {"password": await self._services.passwords.hash(password)} if password else {}
        async with self._services.changes.begin(request) as change:
            row = await self._theirs(change, who, account)
            await AccountRows(change.sql).change(account, **values)
            await change.audit(action, _name(row))
            answer = change.answer(status=204)
        await self._services.end_sign_ins(account)
        return answer

    async def _theirs(self, change: OpenChange, who: Principal, account: int) -> AccountRow:
        """Return an account that somebody may change: its role allows no more than he may."""
        rows = AccountRows(change.sql)
        await rows.lock(who.tenant)
        found = await rows.read(who.tenant, account)
        if found is None:
            raise not_found("account")
        _check_role(who, found.role)
        return found


async def _keep_an_owner(change: OpenChange, row: AccountRow) -> None:
    if not row.disabled and not await AccountRows(change.sql).others(row.tenant, row.id, OWNER):
        raise Problem(409, "last-owner", "this is the last owner; make another one first")


def _check_role(who: Principal, role: str) -> None:
    beyond = sorted(ROLES.get(role, frozenset()) - who.scopes)
    if beyond:
        raise Problem(403, "scope-missing", f"the role {role} allows more than you may: {', '.join(beyond)}")


def _name(row: AccountRow) -> str:
    return f"account/{row.id}"


def _values(row: AccountRow) -> dict[str, Any]:
    return {"name": row.name, "role": row.role, "disabled": row.disabled}


def _shown(row: AccountRow) -> Account:
    return Account(
        id=row.id,
        name=row.name,
        role=cast("Role", row.role),
        disabled=row.disabled,
        created=time_of(row.created),
        last_sign_in=time_or_none(row.last_sign_in),
    )
