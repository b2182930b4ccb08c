"""`/v1/session`: the sign-in of a browser, and the first owner."""

from typing import Annotated, cast

from fastapi import Depends, Request, Response

from fleet.adapters.redis.access.sign_ins import IDLE_SECONDS, SignIn, digest_of_secret
from fleet.adapters.sql.account_rows import AccountRow, AccountRows, SignOuts
from fleet.adapters.sql.audit_rows import Origin
from fleet.adapters.sql.token_rows import FIRST_TENANT, TokenRows
from fleet.core.permissions import OWNER, ROLES
from fleet.roles.control.access import SignedIn, Who, milliseconds, source_of
from fleet.roles.control.accounts.cookies import end_session, session_secret
from fleet.roles.control.first_token import wrong_code
from fleet.roles.control.problems import Problem, not_found
from fleet.roles.control.request_ids import request_id
from fleet.roles.control.routing import ANY_SCOPE, OPEN, RouteNotes, RouteOptions, Routes
from fleet.roles.control.services import ControlServices
from fleet.wire.control.accounts import (
    AccountSession,
    FirstAccount,
    FirstAccountState,
    PasswordChange,
    Role,
    SignInRequest,
)
from fleet.wire.control.shapes import time_of

_LARGEST_BODY = 4_096
"""Bytes of a request with a password: whoever sends it needs no token."""
_REFUSED = RouteNotes(refusals=(403,))


async def _signed_in(who: Who) -> SignedIn:
    if who.sign_in is None:
        raise not_found("sign-in; this is a token")
    return who.sign_in


Own = Annotated[SignedIn, Depends(_signed_in)]
"""The type of an endpoint's parameter that gets the sign-in of a request."""


class SessionRoutes:
    """Signs in and out, changes the own password, and makes the first owner by a one-time code."""

    def __init__(self, services: ControlServices, routes: Routes) -> None:
        self._services, self._gate = services, services.passwords
        begin = RouteOptions(
            model=AccountSession, status=201, largest_body=_LARGEST_BODY, gate=self._gate.admit, notes=_REFUSED
        )
        first = RouteOptions(**{**begin, "gate": self._admit_code})
        own = RouteOptions(model=AccountSession, largest_body=_LARGEST_BODY, secret=True, notes=_REFUSED)
        routes.add("POST /session", self.sign_in, OPEN, **begin)
        routes.add("GET /session", self.read, ANY_SCOPE)
        routes.add("DELETE /session", self.sign_out, ANY_SCOPE, status=204)
        routes.add("POST /session:end_all", self.end_all, ANY_SCOPE, status=204)
        routes.add("POST /session:password", self.change_password, ANY_SCOPE, **own)
        routes.add("GET /accounts:first", self.read_first, OPEN)
        routes.add("POST /accounts:first", self.make_first, OPEN, **first)

    async def sign_in(self, given: SignInRequest, request: Request) -> Response:
        """Sign in: the answer sets a cookie, which stands for the account in further requests of this browser.

        Over HTTPS, or on the machine of control. Wrong names and wrong passwords have the same answer.
        """
        account = await self._gate.check(request, given.tenant, given.name, given.password)
        if former := session_secret(request):
            await self._services.accounts.remove(digest_of_secret(former))
        new = await self._services.accounts.begin(account)
        shown = await self._shown(account, new.sign_in)
        origin = Origin(account.tenant, f"account:{account.name}", source_of(request), request_id(request))
        async with self._services.changes.begin(request, origin) as change:
            await AccountRows(change.sql).note_sign_in(account.id, milliseconds())
            await change.audit("session.begin", _name(account.id))
            answer = change.answer(shown, 201)
        self._gate.give(request, answer, new.secret, account.id)
        return answer

    async def read(self, who: Who, own: Own) -> AccountSession:
        """Return the own sign-in; 404 for a token."""
        account = await AccountRows(self._services.database).read(who.tenant, own.account)
        if account is None:
            raise not_found("account")
        return await self._shown(account, SignIn(own.account, own.epoch, own.began, who.expires or 0))

    async def sign_out(self, who: Who, own: Own, request: Request) -> Response:
        """End the own sign-in, its streams, and the talks of the account.

        Other processes of control refuse it after at most two seconds.
        """
        async with self._services.changes.begin(request) as change:
            await SignOuts(change.sql).add(own.digest, who.expires or 0)
            await change.audit("session.end", _name(own.account))
            answer = change.answer(status=204)
        await self._services.accounts.remove(own.digest)
        self._services.following.forget_sign_ins(digest=own.digest)
        await self._services.voice.end("account", own.account)
        end_session(request, answer)
        return answer

    async def end_all(self, own: Own, request: Request) -> Response:
        """End all sign-ins of the own account, this one too."""
        async with self._services.changes.begin(request) as change:
            await AccountRows(change.sql).change(own.account)
            await change.audit("session.end_all", _name(own.account))
            answer = change.answer(status=204)
        await self._services.end_sign_ins(own.account)
        end_session(request, answer)
        return answer

    async def change_password(self, who: Who, own: Own, given: PasswordChange, request: Request) -> Response:
        """Change the own password. All other sign-ins of the account end; this browser gets a new one."""
        await self._gate.check_own(request, who.tenant, own, given.password)
        password = await self._gate.hash(given.new)
        async with self._services.changes.begin(request) as change:
            account = await AccountRows(change.sql).change(own.account, password=password)
            await change.audit("account.password", _name(own.account))
        await self._services.end_sign_ins(own.account)
        return await self._begun(request, account, 200)

    async def read_first(self) -> FirstAccountState:
        """Return whether nobody owns this control yet, so that its code makes the first owner."""
        accounts = await AccountRows(self._services.database).any_exist()
        owned = accounts or await self._services.tokens.any_exist()
        return FirstAccountState(open=self._services.first_token.valid, owned=owned, accounts=accounts)

    async def make_first(self, given: FirstAccount, request: Request) -> Response:
        """Make the first owner by the code that control shows on its console, and sign in."""
        code = self._services.first_token
        if not code.matches(given.code):
            raise wrong_code()
        password = await self._gate.hash(given.password)
        origin = Origin(FIRST_TENANT, "code", source_of(request), request_id(request))
        async with self._services.changes.begin(request, origin) as change:
            rows = AccountRows(change.sql)
            if await rows.any_exist() or await TokenRows(change.sql).any_exist():
                raise Problem(403, "wrong-code", "somebody owns this control already")
            account = await rows.add(FIRST_TENANT, given.name, OWNER, password, milliseconds())
            await change.audit("account.create", _name(account.id), after={"name": given.name, "role": OWNER})
        code.spend()
        return await self._begun(request, account, 201)

    def _admit_code(self, request: Request) -> None:
        self._services.first_token.admit(request)
        self._gate.admit(request)

    async def _begun(self, request: Request, account: AccountRow, status: int) -> Response:
        """Begin a sign-in, after what it follows from is committed; return the answer with its cookies."""
        new = await self._services.accounts.begin(account)
        shown = await self._shown(account, new.sign_in)
        answer = Response(shown.model_dump_json(), status, media_type="application/json")
        self._gate.give(request, answer, new.secret, account.id)
        return answer

    async def _shown(self, account: AccountRow, sign_in: SignIn) -> AccountSession:
        return AccountSession(
            account=account.id,
            name=account.name,
            tenant=await self._services.tokens.tenant_name(account.tenant),
            role=cast("Role", account.role),
            scopes=sorted(ROLES.get(account.role, ())),
            began=time_of(sign_in.began),
            expires=time_of(sign_in.until),
            idle_seconds=IDLE_SECONDS,
        )


def _name(account: int) -> str:
    return f"account/{account}"
