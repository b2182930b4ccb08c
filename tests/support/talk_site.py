"""Control, gateway, broker, edge and workers, with which a page can talk; and models with one answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2

from tests.support.control_role import control_api
from tests.support.openai_server import Answer, OpenAiServer, run_openai_server, spoken
from tests.support.ports import LOOPBACK, free_port
from tests.support.process import accepts
from tests.support.role_site import role_site
from tests.support.until import until

LIMIT = 240.0
HEARD, SAID = "What do you hear?", "It is quiet here."
TONE = (b"\x00\x20" * 12 + b"\x00\xe0" * 12) * 1000
"""A second at 24 kHz."""


@contextmanager
def talk_models() -> Iterator[OpenAiServer]:
    """Run models that always understand and answer the same."""
    with run_openai_server() as server:
        server.answer("chat/completions", lambda _: spoken(SAID))
        server.transcriptions(Answer([json.dumps({"text": HEARD, "language": "en"}).encode()]))
        server.speech(Answer([TONE], kind="audio/pcm"))
        yield server


@asynccontextmanager
async def talk_site(folder: Path, models: OpenAiServer) -> AsyncIterator[httpx2.AsyncClient]:
    """Run a site; give a client of control's API that may do everything."""
    port = free_port()
    with role_site(folder, models.url) as site:
        for start in (site.edge, site.worker, site.worker):
            start()
        site.start("gateway", CLOUD_HOST=LOOPBACK, CLOUD_PORT=str(port), CLOUD_API_KEY="k")
        async with control_api(site, folder, LIMIT, CLOUD_PORT=str(port)) as client:
            await asyncio.to_thread(until, lambda: site.edges() == 1 and accepts(port), LIMIT)
            await asyncio.to_thread(site.until_spread, 8, 8, seconds=LIMIT)
            yield client
