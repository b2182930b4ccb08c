"""All that a role imports, hidden from the garbage collector.

A process that is forked from one that has imported this looks through nothing of it when it begins, and so copies
nothing of it: that took each role 0.15 seconds of a core.
"""

# ruff: noqa: E402, F401
import gc

gc.disable()

# Control imports the last ones when it starts.
import fleet.adapters.sql.open
import fleet.roles.control.app
import fleet.roles.control.leader.parts
import fleet.run.api
import fleet.run.edge
import fleet.run.gateway
import fleet.run.up
import fleet.run.worker
import fleet.workbench.bench.crowd_load
import fleet.workbench.bench.edge
import fleet.workbench.bench.mqtt_load
import fleet.workbench.bench.udp_load
import fleet.workbench.bench.worker
import tests.support.patient_fleet

# To look for garbage first would take 0.2 seconds, and imports leave little.
gc.freeze()
# As the command does (`fleet.__main__`).
gc.set_threshold(50_000)
gc.enable()
