"""A module in a process that may stand still for a while, as others of its site may: a busy machine changes no outcome.

`python -m tests.support.patient_module MODULE …` runs it, and all that it starts by `module_command` in the same way.
"""

import runpy
import sys
from importlib import import_module

from fleet.adapters.redis import keys
from fleet.workbench.local_servers import module_command
from tests.support.patience import API_STORE, GATEWAY, MQTT, TURNS, WORKER
from tests.support.patient_fleet import REDIS_SECONDS, be_patient

COMMAND = (sys.executable, "-m", "tests.support.patient_module")
"""What runs a module in this way, in place of `module_command.RUN_MODULE`."""
LATE = {
    "fleet api": API_STORE,
    # With the time after which others take an edge for dead, also that after which it does itself.
    "fleet edge": (*MQTT, "fleet.roles.edge.transport.stall_detector.LONG_STALL_SECONDS"),
    "fleet gateway": (*GATEWAY, *MQTT),
    "fleet worker": (*WORKER, *TURNS, "fleet.roles.worker.turns.turns.TOOLS_SECONDS"),
    "fleet.workbench.cluster up": ("fleet.workbench.cluster.role_process.READY_SECONDS",),
}
"""Limits of what a command imports late, or has of its own."""


def run(module: str, *words: str) -> None:
    """Run a module; the time after which others take its edge for dead is as long as its limits."""
    for limit in LATE.get(" ".join((module, *words[:1])), ()):
        name, _, constant = limit.rpartition(".")
        setattr(import_module(name), constant, REDIS_SECONDS)
    be_patient()
    keys.EDGE_SECONDS = round(REDIS_SECONDS)
    module_command.RUN_MODULE = COMMAND
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
