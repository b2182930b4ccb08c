"""`python -m fleet.metrics`: the table of docs/metrics.md."""

import sys

from fleet.metrics.catalogue import table

sys.stdout.write(table())
