import ssl

import httpcore2
import pytest

from fleet.client.client import FleetClient


@pytest.mark.parametrize(
    ("url", "reads"), [("http://127.0.0.1:9", 0), ("HTTP://[::1]:9", 0), ("https://127.0.0.1:9", 1)]
)
def test_only_a_client_with_tls_reads_whom_the_system_trusts(
    monkeypatch: pytest.MonkeyPatch, url: str, reads: int
) -> None:
    read: list[bool] = []

    def authorities(*, _trust_env: bool) -> ssl.SSLContext:
        read.append(_trust_env)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(httpcore2, "default_ssl_context", authorities)
    FleetClient(url, "flt_any").close()
    assert read == [False] * reads
