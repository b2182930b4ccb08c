"""The command `fleet` with more time for Redis than in production: a busy machine must not change the outcome.

`python -m tests.support.patient_fleet …` is it.
"""

from fleet.adapters.redis.client import retries
from fleet.cli import main

REDIS_SECONDS = 30.0


def be_patient() -> None:
    """Let this process wait longer for Redis."""
    retries.LIMIT_SECONDS = REDIS_SECONDS


if __name__ == "__main__":
    be_patient()
    main()
