"""The addresses of the Redis and broker of a running `fleet up`, for commands on the same machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ValidationError

from fleet.adapters.files.watched_file import write_whole

_NAME = "running.json"


class EndpointsFile(BaseModel):
    """Addresses with their passwords; the file that holds them is readable by its owner only."""

    redis_url: str
    mqtt_url: str


@contextmanager
def publish(data_dir: Path, redis_url: str, mqtt_url: str) -> Iterator[None]:
    """Write the addresses to the file for the duration of the block.

    Raises:
        OSError: The file cannot be written.
    """
    path = data_dir / _NAME
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = EndpointsFile(redis_url=redis_url, mqtt_url=mqtt_url).model_dump_json()
    write_whole(path, text, 0o600)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def find(data_dir: Path) -> EndpointsFile | None:
    """Return the addresses; None if no `fleet up` runs with this folder."""
    try:
        return EndpointsFile.model_validate_json((data_dir / _NAME).read_bytes())
    except (OSError, ValidationError):
        return None
