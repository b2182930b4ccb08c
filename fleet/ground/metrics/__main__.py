"""`python -m fleet.ground.metrics`: the table of docs/metrics.md."""

import sys

from fleet.ground.metrics.catalogue import table

sys.stdout.write(table())
