"""Downloads of a device: firmware, assets, pictures (contract 1.5 and 1.6)."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from fleet.workbench.sim.network.https import web
from fleet.workbench.sim.records.audit import Finding

_SECONDS = 30.0
_LARGEST = 16_777_216


@dataclass(frozen=True, slots=True)
class Download:
    """What came, or why nothing did; `findings` are breaches of the server's."""

    content: bytes = b""
    reason: str = ""
    findings: tuple[Finding, ...] = ()


async def download(url: str, sent: Mapping[str, str] | None = None) -> Download:
    """Fetch what a device can take: exactly 200, no redirect, a length, the whole of it, at most 16 MB."""
    try:
        async with (
            web(_SECONDS) as client,
            client.stream("GET", url, headers=dict(sent or {})) as response,
        ):
            if fault := _fault(response):
                return Download(reason=fault, findings=(("download-length", f"{url}: {fault}"),))
            content = b""
            async for block in response.aiter_raw():
                content += block
                if len(content) > _LARGEST:
                    return Download(reason="too large")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return Download(reason=str(error) or type(error).__name__)
    return Download(content)


def _fault(response: httpx2.Response) -> str:
    if response.status_code != 200:
        return f"status {response.status_code}"
    names = [name for name, _ in response.headers.raw]
    if b"Content-Length" not in names:
        return "no Content-Length, spelled so"
    return ""
