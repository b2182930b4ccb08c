"""Checks passwords, begins sign-ins, and gives browsers their cookies."""

from fastapi import Request, Response

from fleet.adapters.sql.account_rows import AccountRow, AccountRows
from fleet.adapters.sql.database import Database
from fleet.ground.errors import Overloaded
from fleet.ground.metrics import accounts as counted
from fleet.roles.control.access import SignedIn
from fleet.roles.control.accounts.access import LIFE_SECONDS
from fleet.roles.control.accounts.cookies import KnownBrowsers, set_session
from fleet.roles.control.accounts.limits import SignInLimits, SignInTry
from fleet.roles.control.accounts.own_page import check_privacy, refuse_foreign_page
from fleet.roles.control.accounts.passwords import Passwords
from fleet.roles.control.problems import Problem

_TRY = "sign_in_try"


class PasswordGate:
    """Lets requests with passwords in.

    Args:
        database: Has the accounts.
        browsers: Those that signed in before.
    """

    def __init__(self, database: Database, browsers: KnownBrowsers) -> None:
        self._rows, self._browsers = AccountRows(database), browsers
        self._limits = SignInLimits()
        self.passwords = Passwords()

    def admit(self, request: Request) -> None:
        """Check what can be checked before the body is read, and count a try.

        Raises:
            Problem: The connection is not private, the page is a foreign one (403), or there were too many tries (429).
        """
        check_privacy(request)
        refuse_foreign_page(request)
        _, browser = self._browsers.recognise(request)
        try:
            setattr(request.state, _TRY, self._limits.begin(request, browser))
        except Problem:
            counted.sign_ins.add("limited")
            raise

    async def check(self, request: Request, tenant: str, name: str, password: str) -> AccountRow:
        """Return the account with a name and a password. What is wrong shows neither in words nor in time.

        Raises:
            Problem: There is none (403), there were too many tries (429), or too many passwords wait (503).
        """
        found = await self._rows.named(tenant, name)
        owner, _ = self._browsers.recognise(request)
        known = found is not None and found[0].id == owner
        if not known:
            self._name(request, f"{tenant}/{name.lower()}")
        kept = found[1] if found is not None else self.passwords.nobody
        right = await self._matches(kept, password, known=known)
        if found is None or not right or found[0].disabled:
            counted.sign_ins.add("wrong")
            raise Problem(403, "wrong-password", "there is no account with this name and password")
        counted.sign_ins.add("ok")
        self._try(request).succeeded()
        return found[0]

    async def check_own(self, request: Request, tenant: int, signed_in: SignedIn, password: str) -> None:
        """Check the password of somebody who is signed in.

        Raises:
            Problem: As `check`.
        """
        # A stolen cookie must not find out the password.
        self._name(request, f"account {signed_in.account}")
        kept = await self._rows.password(tenant, signed_in.account)
        if not await self._matches(kept or self.passwords.nobody, password, known=True):
            raise Problem(403, "wrong-password", "the present password is another one")
        self._try(request).succeeded()

    async def hash(self, password: str) -> str:
        """Return the hash of a new password.

        Raises:
            Problem: Too many passwords wait (503).
        """
        try:
            return await self.passwords.hash(password)
        except Overloaded as error:
            raise _busy(error) from error

    def give(self, request: Request, response: Response, secret: str, account: int) -> None:
        """Give a browser the cookies of a sign-in."""
        set_session(request, response, secret, LIFE_SECONDS)
        self._browsers.remember(request, response, account)
        response.headers["Cache-Control"] = "no-store"

    async def _matches(self, kept: str, password: str, *, known: bool) -> bool:
        try:
            return await self.passwords.matches(kept, password, known=known)
        except Overloaded as error:
            counted.sign_ins.add("busy")
            raise _busy(error) from error

    def _name(self, request: Request, account: str) -> None:
        try:
            self._limits.name(self._try(request), request, account)
        except Problem:
            counted.sign_ins.add("limited")
            raise

    def _try(self, request: Request) -> SignInTry:
        found = getattr(request.state, _TRY, None)
        if not isinstance(found, SignInTry):
            found = SignInTry()
            setattr(request.state, _TRY, found)
        return found


def _busy(error: Overloaded) -> Problem:
    return Problem(503, "busy", str(error), headers={"Retry-After": "2"})
