"""`fleet doctor`."""

from typing import Annotated

import typer

from fleet.ground.settings import Settings
from fleet.operations.connect import operation
from fleet.operations.json_output import AsJson

PARTS = (
    *("settings", "broker", "redis", "roles", "api", "session"),
    *("llm", "speech", "certificates", "clock", "machine"),
)

Device = Annotated[str, typer.Option(help="MAC of a device: examine only this device, and show why it is silent.")]
Only = Annotated[str, typer.Option(help=f"Examine only these parts, separated by commas: {', '.join(PARTS)}.")]
Ota = Annotated[
    str,
    typer.Option(help="Behave as a device in this network: bootstrap at this URL (…/xiaozhi/ota/), hello and audio."),
]


@operation
async def doctor(
    settings: Settings, device: Device = "", only: Only = "", ota: Ota = "", as_json: AsJson = False
) -> int:
    """Find faults of a site, and print what to do. Exit code 0: no problem; 1: problems; 2: wrong settings.

    Run it with the environment of the roles, because it reads the same settings. It sends one request each to the chat
    model, the voice and the recognition. It connects to the broker and to an edge as devices of its own, and deletes
    their records afterwards.
    """
    # Imported here: the doctor needs all modules, and other commands, above all health probes, must start fast.
    from fleet.operations.doctor.run import run_doctor

    return await run_doctor(settings, device, only, ota, as_json=as_json)
