"""A private authority, a server certificate from it, and the means to replace that one while a server runs."""

import random
import socket
import ssl
from pathlib import Path

from fleet.adapters.net.tls.certificate import ServerCertificate
from fleet.adapters.net.tls.private_authority import CA, SERVER, SERVER_KEY, make_certificates

_TRIES = 50


class Pki:
    """Certificates in a folder.

    Args:
        folder: An empty one.
        names: Of the server.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        self._folder = folder
        self._names = list(names) or ["127.0.0.1", "localhost"]
        self._renewed = 0
        make_certificates(folder, self._names)
        self.ca, self.cert, self.key = folder / CA, folder / SERVER, folder / SERVER_KEY

    @property
    def client(self) -> ssl.SSLContext:
        """What trusts this authority only."""
        return ssl.create_default_context(cafile=self.ca)

    @property
    def settings(self) -> dict[str, str]:
        return {"tls_cert": str(self.cert), "tls_key": str(self.key)}

    def server(self) -> ServerCertificate:
        return ServerCertificate(self.cert, self.key)

    def draft(self) -> tuple[Path, Path]:
        """Return certificate and key of the same authority that nobody uses yet."""
        self._renewed += 1
        place = self._folder / f"renewed-{self._renewed}"
        place.mkdir()
        for name in (CA, "ca.key"):
            (place / name).write_bytes((self._folder / name).read_bytes())
        make_certificates(place, self._names)
        return place / SERVER, place / SERVER_KEY

    def renew(self) -> None:
        """Replace the server's certificate and key."""
        cert, key = self.draft()
        key.replace(self.key)
        cert.replace(self.cert)


def serial(writer_or_object: object) -> bytes:
    """Return the certificate, in DER, that the other end of a TLS stream showed."""
    found = writer_or_object.get_extra_info("ssl_object")  # type: ignore[attr-defined]
    shown = found.getpeercert(binary_form=True)
    assert shown
    return bytes(shown)


def firmware_address() -> str:
    """Return a loopback address whose port 8883 is free: firmware speaks TLS on no other port."""
    for _ in range(_TRIES):
        host = f"127.{random.randint(1, 250)}.{random.randint(0, 250)}.{random.randint(1, 250)}"
        with socket.socket() as probe:
            try:
                probe.bind((host, 8883))
            except OSError:
                continue
            return host
    raise AssertionError("no loopback address has port 8883 free")
