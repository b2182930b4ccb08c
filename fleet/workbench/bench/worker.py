"""The process with a real worker: `python -m fleet.workbench.bench.worker CONFIG LOG`; orders on standard input.

It is the worker role as `fleet worker` runs it, but for the chat model, which is in this process and has its text.
"""

import secrets
import sys
from pathlib import Path
from typing import Any

from fleet.adapters.net.mqtt.url import parse_mqtt_url
from fleet.adapters.redis.client.store import Store
from fleet.core.agent_settings import OneModel
from fleet.ground import log, runtime
from fleet.ground.settings import Settings
from fleet.ground.settings.logs import log_budget
from fleet.ground.settings.slices import slice_of
from fleet.ground.tasks import running
from fleet.roles.worker.app import Worker
from fleet.roles.worker.resources import WorkerResources
from fleet.roles.worker.settings import WorkerSettings
from fleet.wire.identity import CredentialKeys
from fleet.workbench.bench import control
from fleet.workbench.bench.model import ScriptedModel
from fleet.workbench.bench.servers import read_settings


class Bench:
    """What the worker is asked.

    Args:
        role: The worker.
        waited: How long turns waited for calls, in seconds.
    """

    def __init__(self, role: Worker, waited: list[float]) -> None:
        self._role = role
        self._waited = waited

    async def do(self, command: dict[str, Any]) -> dict[str, Any]:
        """Do what the benchmark says and return the answer."""
        if command["do"] == "watch":
            self._waited.clear()
        return {"ready": self._role.ready, "waited": self._waited}


async def _serve(settings: Settings) -> None:
    store = await Store.open(settings.redis_url or "", settings.shards)
    keys = CredentialKeys(settings.keys.get_secret_value() if settings.keys else "")
    waited: list[float] = []
    try:
        resources = WorkerResources.of(slice_of(settings, WorkerSettings), keys, OneModel(ScriptedModel(waited)), store)
        role = Worker(resources, f"bench-{secrets.token_hex(4)}", parse_mqtt_url(settings.mqtt_url or ""))
        async with running("worker", role.run):
            await control.obey(lambda: Bench(role, waited).do)
    finally:
        await store.close()


def main() -> int:
    config, log_file = map(Path, sys.argv[1:])
    settings = read_settings(config)
    with log_file.open("a", encoding="utf-8") as stream:
        rate = log_budget(settings.log_rate, settings.log_level)
        log.configure(settings.log_level, settings.log_format, pii=False, stream=stream, rate=rate)
        return runtime.run(lambda: _serve(settings))


if __name__ == "__main__":
    sys.exit(main())
