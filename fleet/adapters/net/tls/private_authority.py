"""Makes a private certificate authority and server certificates, for simulators and for control.

Boards trust public ones only.
"""

import ipaddress
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fleet.ground.errors import ConfigError

CA, CA_KEY, SERVER, SERVER_KEY = "ca.pem", "ca.key", "server.pem", "server.key"
_CA_DAYS, _SERVER_DAYS = 3650, 397
_RENEWAL = timedelta(days=30)
_CLOCK_SKEW = timedelta(hours=1)
"""Certificates are valid from this time before now, because the clocks of machines differ."""
_NAME = re.compile(r"(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


def make_certificates(folder: Path, names: list[str]) -> list[Path]:
    """Write a server certificate for names and IP addresses, and its authority if the folder has none.

    Only the owner can read the files. No file is overwritten.

    Returns:
        Paths of the files that were written.

    Raises:
        ConfigError: A name is not valid, a file exists already, or the folder cannot be written.
    """
    subjects = [_subject(name) for name in names]
    if not subjects:
        raise ConfigError("name at least one host name or IP address")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in (SERVER, SERVER_KEY):
            if (folder / name).exists():
                raise ConfigError(f"{folder / name} exists already; nothing is overwritten")
        written, authority, signing = _load_or_create_authority(folder)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _issue(subjects, key.public_key(), authority, signing)
        _write(folder / SERVER_KEY, _pem(key))
        _write(folder / SERVER, certificate.public_bytes(serialization.Encoding.PEM))
    except FileExistsError as error:
        raise ConfigError(f"{error.filename} exists already; nothing is overwritten") from error
    except OSError as error:
        raise ConfigError(f"{error.filename}: {error.strerror}") from error
    return [*written, folder / SERVER, folder / SERVER_KEY]


def own_certificate(folder: Path, names: list[str], now: datetime) -> tuple[Path, Path]:
    """Return certificate and key of a folder; make them if there are none, if they end soon, or lack a name.

    The authority of the folder stays, so that who trusts it trusts the new certificate too.

    Raises:
        ConfigError: A file cannot be read or written.
    """
    chain, key = folder / SERVER, folder / SERVER_KEY
    if not (key.exists() and _serves(chain, names, now)):
        for path in (chain, key):
            path.unlink(missing_ok=True)
        make_certificates(folder, names)
    return chain, key


def _serves(chain: Path, names: list[str], now: datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(chain.read_bytes())
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return False
    return certificate.not_valid_after_utc - now > _RENEWAL and all(_subject(name) in found for name in names)


def _subject(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        name = text.lower()
    if len(name) > 253 or not _NAME.fullmatch(name) or re.fullmatch(r"[\d.]+", name):
        raise ConfigError(f"{text!r} is neither a host name nor an IP address")
    return x509.DNSName(name)


def _load_or_create_authority(folder: Path) -> tuple[list[Path], x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return the files that were written, and the certificate and key of the folder's authority."""
    files = [folder / CA, folder / CA_KEY]
    missing = [path for path in files if not path.exists()]
    if len(missing) == 1:
        raise ConfigError(f"{missing[0]} is missing, but the other file of the authority exists")
    if not missing:
        return [], *_read_authority(*files)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _self_signed(key)
    _write(files[1], _pem(key))
    _write(files[0], certificate.public_bytes(serialization.Encoding.PEM))
    return files, certificate, key


def _read_authority(chain: Path, path: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        certificate = x509.load_pem_x509_certificate(chain.read_bytes())
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{chain} or {path} is not PEM, or has a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise ConfigError(f"{path} is not the key of {chain}")
    return certificate, key


def _self_signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleet development authority")])
    usage = _usage(signs=True)
    return (
        _builder(name, name, key.public_key(), _CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _issue(
    subjects: list[x509.GeneralName],
    key: ec.EllipticCurvePublicKey,
    authority: x509.Certificate,
    signing: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleet development server")])
    return (
        _builder(name, authority.subject, key, _SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName(subjects), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .sign(signing, hashes.SHA256())
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    numbered = builder.serial_number(x509.random_serial_number())
    return numbered.not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + timedelta(days=days))


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
