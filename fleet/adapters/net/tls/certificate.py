"""A server's certificate, reloaded whenever its files change, without a restart of listeners or connections."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from fleet.ground.errors import ConfigError
from fleet.ground.tasks import running

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
WARNING = timedelta(days=14)
"""Remaining validity at which warnings begin. Automatic renewal happens a month before the end, so it has failed."""
_DAY = 86_400.0

Stamp = tuple[tuple[int, int, int], ...]


class ServerCertificate:
    """A certificate and its key; follows changes of the files.

    `context` is for listeners. Existing connections keep their certificate; every later handshake uses the newest valid
    pair. Each pair is loaded into a new context: a failed load into the current one would leave it without a pair.

    Args:
        chain: PEM file with the certificate, and those between it and its authority.
        key: PEM file with its key, without a password.

    Raises:
        ConfigError: They cannot be read, do not fit together, or the key has a password.
    """

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self._stamp = self._look()
        self.context = self._newest = self._load()
        self.context.sni_callback = self._use_newest  # also called for clients that name no server
        self._fault = ""

    async def run(self) -> None:
        """Follow the files until cancelled, and log daily if the certificate expires soon."""
        clock = asyncio.get_running_loop().time
        warned = clock() - _DAY
        while True:
            if clock() - warned >= _DAY:
                warned = clock()
                self._warn_before_end(datetime.now(UTC))
            if self.look():
                warned = clock() - _DAY
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> bool:
        """Check the files once; return whether there is a new certificate. Invalid files change nothing."""
        try:
            stamp = self._look()
            if stamp == self._stamp:
                return False
            self._newest = self._load()
        except ConfigError as error:
            if str(error) != self._fault:
                log.warning("certificate stays as it was", extra={"reason": str(error)})
            self._fault = str(error)
            return False
        self._stamp, self._fault = stamp, ""
        log.info("certificate changed", extra={"file": str(self._chain)})
        return True

    def _use_newest(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._newest

    def _look(self) -> Stamp:
        try:
            found = [path.stat() for path in (self._chain, self._key)]
        except OSError as error:
            raise ConfigError(f"{error.filename}: {error.strerror}") from error
        return tuple((one.st_mtime_ns, one.st_size, one.st_ino) for one in found)

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        # Some builds of Python allow older versions by default.
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            # Without `password` the library would prompt for it on the terminal.
            context.load_cert_chain(self._chain, self._key, password=_no_password)
        except ssl.SSLError as error:
            reason = (error.reason or "no PEM, or the key has a password").lower().replace("_", " ")
            raise ConfigError(f"{self._chain} and {self._key}: {reason}") from error
        except OSError as error:
            raise ConfigError(f"{self._chain} or {self._key}: {error.strerror}") from error
        return context

    def _warn_before_end(self, now: datetime) -> None:
        try:
            end = x509.load_pem_x509_certificates(self._chain.read_bytes())[0].not_valid_after_utc
        except (OSError, ValueError):
            return  # between the writes of two files; the next check repeats this
        if end - now < WARNING:
            message = "certificate ends soon" if end > now else "certificate has expired"
            log.warning(message, extra={"file": str(self._chain), "ends": end.isoformat()})


def _no_password() -> str:
    return ""


@asynccontextmanager
async def followed_certificate(chain: Path | None, key: Path | None) -> AsyncIterator[ServerCertificate | None]:
    """Yield the server's certificate, which follows its files during the block; yield None if no files are given.

    Args:
        chain: PEM file with the certificate and those between it and its authority (FLEET_TLS_CERT).
        key: PEM file with its key (FLEET_TLS_KEY).

    Raises:
        ConfigError: The files cannot be used.
    """
    if chain is None or key is None:
        yield None
        return
    found = ServerCertificate(chain, key)
    async with running("certificate", found.run):
        yield found
