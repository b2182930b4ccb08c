"""`fleet doctor`."""

from typing import Annotated

import typer

from fleet.operations.connect import run

PARTS = (
    *("settings", "broker", "redis", "roles", "api", "session"),
    *("llm", "speech", "certificates", "clock", "machine"),
)

Device = Annotated[str, typer.Option(help="MAC of a device: tell why it is silent, instead.")]
Only = Annotated[str, typer.Option(help=f"Examine these only, separated by commas: {', '.join(PARTS)}.")]
Ota = Annotated[
    str,
    typer.Option(help="Be a device where you are: bootstrap at this URL (…/xiaozhi/ota/), hello, audio; nothing else."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def doctor(device: Device = "", only: Only = "", ota: Ota = "", as_json: AsJson = False) -> None:
    """Find out what is wrong, and what to do about it. Exit code 0: nothing; 1: problems; 2: settings are wrong.

    The settings are those of the roles: run it with the same environment. It asks chat model, voice and recognition
    once each, and talks to the broker and to an edge as a device of its own, which is forgotten afterwards.
    """
    # It looks at everything and so imports everything: other commands, and probes above all, need not wait for that.
    from fleet.operations.doctor.run import DoctorRequest, run_doctor

    run(lambda settings: run_doctor(settings, DoctorRequest(device, only, ota, as_json)))
