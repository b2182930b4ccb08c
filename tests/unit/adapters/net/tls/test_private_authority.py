"""The certificates of `fleet certs dev`."""

import stat
from pathlib import Path

import pytest
from cryptography import x509
from typer.testing import CliRunner

from fleet.adapters.net.tls.private_authority import CA, CA_KEY, SERVER, SERVER_KEY, make_certificates
from fleet.ground.errors import ConfigError
from fleet.operations import certs_command


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_server_is_named_and_signed_by_the_authority(tmp_path: Path) -> None:
    make_certificates(tmp_path, ["Voice.example", "*.voice.example", "192.0.2.7", "2001:db8::7"])
    server, authority = read(tmp_path / SERVER), read(tmp_path / CA)
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["voice.example", "*.voice.example"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["192.0.2.7", "2001:db8::7"]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_all_files_are_their_owners_alone(tmp_path: Path) -> None:
    written = make_certificates(tmp_path / "new", ["localhost"])
    assert sorted(path.name for path in written) == sorted((CA, CA_KEY, SERVER, SERVER_KEY))
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.parametrize("there", [SERVER, SERVER_KEY])
def test_nothing_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("precious")
    with pytest.raises(ConfigError, match="nothing is overwritten"):
        make_certificates(tmp_path, ["localhost"])
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "precious"


def test_an_authority_that_is_there_signs_the_next_server_too(tmp_path: Path) -> None:
    make_certificates(tmp_path, ["localhost"])
    authority, first = (tmp_path / CA).read_bytes(), read(tmp_path / SERVER)
    (tmp_path / SERVER).unlink()
    (tmp_path / SERVER_KEY).unlink()
    assert len(make_certificates(tmp_path, ["localhost"])) == 2
    assert (tmp_path / CA).read_bytes() == authority
    read(tmp_path / SERVER).verify_directly_issued_by(read(tmp_path / CA))
    assert read(tmp_path / SERVER).serial_number != first.serial_number


def test_half_an_authority_or_a_foreign_key_is_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        make_certificates(tmp_path / folder, ["localhost"])
        (tmp_path / folder / SERVER).unlink()
        (tmp_path / folder / SERVER_KEY).unlink()
    (tmp_path / "one" / CA_KEY).write_bytes((tmp_path / "two" / CA_KEY).read_bytes())
    with pytest.raises(ConfigError, match="not the key"):
        make_certificates(tmp_path / "one", ["localhost"])
    (tmp_path / "two" / CA_KEY).unlink()
    with pytest.raises(ConfigError, match="is missing"):
        make_certificates(tmp_path / "two", ["localhost"])


@pytest.mark.parametrize("name", ["", "a b", "https://host", "host:8883", "-a", "300.1.1.1", "x" * 64, "a..b"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="neither a host name"):
        make_certificates(tmp_path, ["localhost", name])
    assert not list(tmp_path.iterdir())


def test_command_says_how_to_go_on_and_refuses_a_second_time(tmp_path: Path) -> None:
    wish = ["dev", "192.0.2.7", "--dir", str(tmp_path / "certs")]
    made = CliRunner().invoke(certs_command.app, wish)
    assert made.exit_code == 0, made.output
    assert "https://192.0.2.7:8443/xiaozhi/ota/" in made.output
    again = CliRunner().invoke(certs_command.app, wish)
    assert again.exit_code == 2
    assert "nothing is overwritten" in again.output
