"""The address at which devices reach the api."""

from dataclasses import dataclass
from pathlib import Path

from fleet.core.api_address import api_address


@dataclass(frozen=True)
class Settings:
    http_public: str | None = None
    public_host: str | None = None
    http_port: int = 8003
    https_port: int = 8443
    tls_cert: Path | None = None


def test_the_address_is_that_of_the_settings_or_the_host_by_which_the_device_came() -> None:
    assert api_address(Settings(), "10.0.0.2") == "http://10.0.0.2:8003"
    assert api_address(Settings(tls_cert=Path("cert.pem")), "10.0.0.2") == "https://10.0.0.2:8443"
    assert api_address(Settings(public_host="voice.example"), "10.0.0.2") == "http://voice.example:8003"
    assert api_address(Settings(http_public="https://cdn.example"), "") == "https://cdn.example"
    assert api_address(Settings(), "") is None
    assert api_address(Settings(http_port=0), "10.0.0.2") is None
