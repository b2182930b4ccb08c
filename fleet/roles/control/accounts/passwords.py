"""Hashes of passwords by argon2id, a few at a time whatever the number of clients."""

import asyncio
import base64
import secrets
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from fleet.ground.errors import Overloaded

MEMORY_KIB: Final = 32 * 1024
PASSES: Final = 3
MOST_WAITING: Final = 20
"""Passwords that wait for the thread of one kind of clients."""
_SALT, _HASH = 16, 32


class Passwords:
    """Hashes and checks passwords in two threads: one for clients that are known, one for strangers.

    So at most two hashes run at a time, with `MEMORY_KIB` each, and strangers keep nobody out who signed in before.
    """

    def __init__(self) -> None:
        self._hasher = PasswordHasher(PASSES, MEMORY_KIB, 1, _HASH, _SALT)
        self._threads = {known: ThreadPoolExecutor(1, f"passwords-{known}") for known in (True, False)}
        self._waiting = {True: 0, False: 0}
        self.nobody = _hash_of_nothing()
        """A hash that no password has, to be checked where there is no account: that takes as long as any other."""

    async def hash(self, password: str) -> str:
        """Return the hash of a new password, with salt and parameters.

        Raises:
            Overloaded: Too many passwords wait.
        """
        text = normal(password)
        return await self._run(lambda: self._hasher.hash(text), known=True)

    async def matches(self, kept: str, password: str, *, known: bool) -> bool:
        """Return whether a password has a hash.

        Args:
            kept: The hash.
            password: The password.
            known: Whether the client has signed in to the account before.

        Raises:
            Overloaded: Too many passwords wait.
        """
        text = normal(password)

        def check() -> str:
            try:
                self._hasher.verify(kept, text)
                return "yes"
            except (VerificationError, InvalidHashError):
                return ""

        return bool(await self._run(check, known=known))

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], str], *, known: bool) -> str:
        if self._waiting[known] >= MOST_WAITING:
            raise Overloaded("too many passwords are checked")
        self._waiting[known] += 1
        try:
            # A thread of its own and not a semaphore: a client that goes away does not end the hash that runs.
            return await asyncio.get_running_loop().run_in_executor(self._threads[known], work)
        finally:
            self._waiting[known] -= 1


def normal(password: str) -> str:
    """Return a password as it is hashed: keyboards write the same character in several ways."""
    return unicodedata.normalize("NFC", password)


def _hash_of_nothing() -> str:
    salt, digest = (base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (_SALT, _HASH))
    return f"$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p=1${salt}${digest}"
