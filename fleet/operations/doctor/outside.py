"""Examining a site from where its devices are, with nothing but the URL that they have."""

from fleet.ground.errors import FleetError, Unavailable
from fleet.ground.settings import Settings
from fleet.operations.doctor import session
from fleet.operations.doctor.api import web
from fleet.operations.doctor.case import open_case
from fleet.operations.doctor.finding import Finding, ok, problem
from fleet.operations.doctor.visit import PATH, visit


async def examine_outside(settings: Settings, ota: str) -> list[Finding]:
    """Return what a device of the doctor's meets on its way from bootstrap to audio.

    Args:
        settings: Of which only FLEET_TLS_CA counts.
        ota: The URL of bootstrap.
    """
    bare = settings.model_copy(update={"redis_url": None, "mqtt_url": None, "keys": None, "keys_file": None})
    found: list[Finding] = []
    async with open_case(bare, beside=False) as case:
        try:
            async with web(case) as http:
                met = await visit(http, _base(ota), case.macs[0], case.client, case.now)
        except Unavailable as error:
            advice = "Is this the URL that devices have, and does it lead to `fleet api` (FLEET_HTTP_PUBLIC)?"
            return [problem("api.reach", str(error), advice)]
        case.visit.set_result(met)
        found.append(ok("api.reach", f"{ota} answers"))
        if met.mqtt is None:
            told = f"bootstrap answers {met.status} and gives no credentials"
            advice = "With FLEET_ACTIVATION=code or closed strangers get none: run `fleet doctor` on the server"
            return [*found, problem("api.bootstrap", told, advice)]
        found.append(ok("api.bootstrap", f"devices are sent to {met.mqtt.endpoint}"))
        try:
            found += [finding async for finding in session.examine(case)]
        except (FleetError, OSError) as error:
            found.append(problem("session.unfinished", str(error), "Run this again"))
    return found


def _base(ota: str) -> str:
    return ota.rstrip("/").removesuffix(PATH.rstrip("/"))
