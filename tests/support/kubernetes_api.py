"""What an edge sees of Kubernetes: nodes, over HTTPS, for a service account with a token."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from fleet.adapters.net.kubernetes_node import Cluster
from tests.support.certificates import Pki

TOKEN = "token-of-the-edge"


class KubernetesApi:
    def __init__(self, nodes: dict[str, object]) -> None:
        self.nodes = nodes
        self.status: int | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        name = head.split(" ")[1].removeprefix("/api/v1/nodes/")
        status, body = HTTPStatus.OK, json.dumps(self.nodes.get(name)).encode()
        if self.status is not None:
            status = HTTPStatus(self.status)
        elif f"authorization: bearer {TOKEN}\r\n" not in head.lower():
            status = HTTPStatus.UNAUTHORIZED
        elif name not in self.nodes:
            status = HTTPStatus.NOT_FOUND
        writer.write(f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def kubernetes_api(
    folder: Path, nodes: dict[str, object], host: str = "127.0.0.1", port: int = 0, *names: str
) -> AsyncIterator[tuple[KubernetesApi, Cluster]]:
    pki, api = Pki(folder / "pki", *names), KubernetesApi(nodes)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki.cert, pki.key)
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    server = await asyncio.start_server(api.serve, host, port, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield api, Cluster(f"https://{host}:{port}", token, pki.ca)
