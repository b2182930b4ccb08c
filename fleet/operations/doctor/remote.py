"""Examine a site from the network of its devices, with only the URL of bootstrap."""

from fleet.core.finding import Finding, ok, problem
from fleet.ground.errors import FleetError, Unavailable
from fleet.ground.settings import Settings
from fleet.operations.doctor import session
from fleet.operations.doctor.api import web
from fleet.operations.doctor.ask_bootstrap import PATH, ask_bootstrap
from fleet.operations.doctor.clock import judge_clock
from fleet.operations.doctor.site import open_site


async def examine_remote(settings: Settings, ota: str) -> list[Finding]:
    """Return the findings of a test device, from bootstrap to audio.

    Args:
        settings: Only FLEET_TLS_CA is used.
        ota: The URL of bootstrap.
    """
    bare = settings.model_copy(update={"redis_url": None, "mqtt_url": None, "keys": None, "keys_file": None})
    found: list[Finding] = []
    async with open_site(bare, beside=False) as site:
        try:
            async with web(site) as http:
                reply = await ask_bootstrap(http, _base(ota), site.macs[0], site.client, site.now)
        except Unavailable as error:
            advice = "Use the URL that the devices have; it must lead to `fleet api` (FLEET_HTTP_PUBLIC)"
            return [problem("api.reach", str(error), advice)]
        site.bootstrap.set_result(reply)
        found.append(ok("api.reach", f"{ota} answers"))
        if reply.ahead is not None:
            found.append(judge_clock("clock.api", "the api", reply.ahead, reply.within))
        if reply.mqtt is None:
            message = f"bootstrap answers {reply.status} and gives no credentials"
            advice = "With FLEET_ACTIVATION=code or closed, new devices get none: run `fleet doctor` on the server"
            return [*found, problem("api.bootstrap", message, advice)]
        found.append(ok("api.bootstrap", f"bootstrap sends devices to {reply.mqtt.endpoint}"))
        try:
            found += [finding async for finding in session.examine(site)]
        except (FleetError, OSError) as error:
            found.append(problem("session.unfinished", str(error), "Run this again"))
    return found


def _base(ota: str) -> str:
    return ota.rstrip("/").removesuffix(PATH.rstrip("/"))
