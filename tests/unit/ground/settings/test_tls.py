"""The settings of TLS."""

from pathlib import Path

import pytest

from fleet.ground.errors import ConfigError
from fleet.ground.settings import load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "some.pem"
    found.write_text("any")
    return found


def test_nothing_is_switched_on_by_itself() -> None:
    settings = load()
    assert (settings.tls_cert, settings.tls_key, settings.tls_ca, settings.tls_only) == (None, None, None, False)
    assert (settings.mqtts_port, settings.https_port) == (8883, 8443)
    assert settings.plain_host("0.0.0.0") == "0.0.0.0"


def test_certificate_and_key_go_together(file: Path) -> None:
    for alone in ({"tls_cert": file}, {"tls_key": file}):
        with pytest.raises(ConfigError, match="FLEET_TLS_CERT and FLEET_TLS_KEY go together"):
            load(**alone)
    assert load(tls_cert=file, tls_key=file).tls_cert == file


def test_plain_listeners_for_this_machine_only_need_the_others(file: Path) -> None:
    with pytest.raises(ConfigError, match="FLEET_TLS_ONLY needs"):
        load(tls_only=True)
    assert load(tls_only=True, tls_cert=file, tls_key=file).plain_host("0.0.0.0") == "127.0.0.1"


@pytest.mark.parametrize("name", ["tls_cert", "tls_key", "tls_ca"])
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"FLEET_{name.upper()}: .*none.pem is no file"):
        load(**{name: tmp_path / "none.pem"})
