"""The command `fleet` with more time for Redis and the database: a busy machine must not change the outcome.

`python -m tests.support.patient_fleet …` is it.
"""

import os
import sys

from fleet.adapters.redis import keys
from fleet.adapters.redis.client import retries
from fleet.cli import main
from tests.support.patience import API_STORE, EDGE_SECONDS, GATEWAY, SQL

REDIS_SECONDS = 240.0


def be_patient() -> None:
    """Let this process wait longer for Redis, and for the database if what asks it is imported."""
    retries.LIMIT_SECONDS = REDIS_SECONDS
    keys.EDGE_SECONDS = int(os.environ.get(EDGE_SECONDS, keys.EDGE_SECONDS))
    for limit in (*API_STORE, *GATEWAY, *SQL):
        module, _, name = limit.rpartition(".")
        if module in sys.modules:
            setattr(sys.modules[module], name, REDIS_SECONDS)


if __name__ == "__main__":
    be_patient()
    main()
