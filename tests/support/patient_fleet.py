"""The command `fleet` with more time for Redis and the database: a busy machine must not change the outcome.

`python -m tests.support.patient_fleet …` is it.
"""

import os
import sys

from fleet.adapters.redis import keys
from fleet.adapters.redis.client import retries
from fleet.cli import main
from tests.support.patience import API, SQL

REDIS_SECONDS = 240.0
LASTING_EDGE = {"TEST_EDGE_SECONDS": "240"}
"""Environment of an edge that counts as alive though it stands still, as on a busy machine."""


def be_patient() -> None:
    """Let this process wait longer for Redis, and for the database if what asks it is imported."""
    retries.LIMIT_SECONDS = REDIS_SECONDS
    keys.EDGE_SECONDS = int(os.environ.get("TEST_EDGE_SECONDS", keys.EDGE_SECONDS))
    for limit in (*SQL, *(limit for limit in API if limit.endswith(".STORE_SECONDS"))):
        module, _, name = limit.rpartition(".")
        if module in sys.modules:
            setattr(sys.modules[module], name, REDIS_SECONDS)


if __name__ == "__main__":
    be_patient()
    main()
